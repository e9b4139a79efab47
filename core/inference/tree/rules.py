"""Which trees a model considers."""

from typing import NamedTuple

#: The first label of a parser: it scores arcs. The others are relations.
HEAD = "(head)"


class TreeRules(NamedTuple):
    """Whether there are trees at all, and which ones are possible."""

    present: bool  # otherwise sentences are chains of labels
    projective: bool  # no arcs cross
    single_root: bool  # exactly one word has the root as its head


NO_TREES = TreeRules(present=False, projective=False, single_root=False)
