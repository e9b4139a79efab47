"""The model registry: versions, aliases, policies and retention."""
