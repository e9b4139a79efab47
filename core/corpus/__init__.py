"""Corpora: readers and writers, vocabularies, validation."""
