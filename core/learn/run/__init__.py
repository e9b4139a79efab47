"""A training run: the loop over passes, progress, checkpoints, stopping."""
