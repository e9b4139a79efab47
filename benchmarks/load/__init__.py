"""A mixed load on a stack of its own, and what its processes and tables do meanwhile."""
