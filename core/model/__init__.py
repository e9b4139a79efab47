"""Trained models: the file, tagging with it, and the cache that serving maps it from."""
