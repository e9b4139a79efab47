"""Jobs: create, list, watch, cancel, pause, resume, retry."""
