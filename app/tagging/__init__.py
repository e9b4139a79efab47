"""Tagging: resolves the model version and builds the response."""
