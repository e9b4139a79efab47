"""The sparse model: what training leaves, its file, and tagging with it."""
