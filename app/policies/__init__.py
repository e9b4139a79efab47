"""Policies of models: what a version must show before it is promoted, and how many are kept."""
