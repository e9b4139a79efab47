"""Experiments with several runs: comparing trainers, and tuning the fields of a spec by cross-validation."""
