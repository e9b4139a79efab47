"""Trainers that run two other trainers in sequence."""

#: The order of the kinds in the HTTP contract; other kinds follow by name.
ORDER = ("two-stage", "sparseptron")
