"""Lexicons: upload, list, download, delete."""
