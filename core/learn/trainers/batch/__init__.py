"""Quasi-Newton trainers: every step reads the whole corpus."""

#: The order of the kinds in the HTTP contract; other kinds follow by name.
ORDER = ("lbfgs", "owlqn")
