"""Tagging: which version answers, and the answer."""
