"""Corpora: upload, list, report, download, delete."""
