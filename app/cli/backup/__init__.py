"""Backups of a whole database: one file for both dialects."""
