"""Trainers that keep or drop whole groups of features."""

#: The order of the kinds in the HTTP contract; other kinds follow by name.
ORDER = ("prox-grad",)
