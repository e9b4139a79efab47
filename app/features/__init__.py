"""Preview of features before training."""
