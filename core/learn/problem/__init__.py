"""A training problem: a corpus as attribute rows, gold labels and groups of features."""
