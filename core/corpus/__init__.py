"""Corpora: data structures, formats, codings of labels, reports, generated examples."""
