"""Lexicons: lists of words, names, categories and clusters, statistics of raw text, and how they are matched."""
