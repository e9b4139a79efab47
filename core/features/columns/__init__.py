"""The columns that templates read: those of the corpus, derived and matched ones, and bags."""
