"""Weights during training: layout of rows, scoring of sequences."""
