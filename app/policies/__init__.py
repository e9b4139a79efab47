"""Policies of models: the conditions for promoting a version, and how many versions are kept."""
