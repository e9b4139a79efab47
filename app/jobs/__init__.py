"""Jobs: create, list, watch, cancel."""
