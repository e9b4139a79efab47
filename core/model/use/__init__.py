"""Using a model: what it takes, its signature, and tagging text."""
