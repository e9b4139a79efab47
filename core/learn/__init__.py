"""Training: problems, weights, one file per trainer, and the pass loop that runs every trainer."""
