"""Scores of arcs and relations by a model of trees, and their explanation."""
