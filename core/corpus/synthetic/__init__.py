"""Labelled text made up from a seed, for demonstrations and tests."""
