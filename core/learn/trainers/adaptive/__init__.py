"""Stochastic gradient descent with learning rates that depend on feature frequency: ADF and MADF."""

#: The order of the kinds in the HTTP contract; other kinds follow by name.
ORDER = ("adf", "madf")
