"""Stochastic gradient descent."""

#: The order of the kinds in the HTTP contract; other kinds follow by name.
ORDER = ("sgd", "asgd", "sgd-l1")
