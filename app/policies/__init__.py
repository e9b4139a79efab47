"""Policies of models: what a version must show before it is promoted."""
