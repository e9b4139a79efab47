"""Matched columns: their values depend on the whole sentence or on a lexicon. One file per kind."""
