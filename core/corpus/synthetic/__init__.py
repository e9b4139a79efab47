"""Generated labelled text, for demonstrations and tests."""
