"""Evaluation: scores of taggings, and significance of their differences."""
