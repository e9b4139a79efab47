"""The layout of the weights of a problem: the sizes and flags that all kernels share."""

from typing import NamedTuple


class Layout(NamedTuple):
    """Weights are rows of `width` numbers, of which the first `labels` are used. The order of the rows is:

    one row per attribute; from row `attributes` on, one row per label for the transitions out of it; from row `blocks`
    on, one block per edge attribute, with one row per label.
    """

    attributes: int
    blocks: int
    labels: int
    width: int
    edges: bool  # whether label bigrams are features
    rich: bool  # whether tokens have their own transitions, from edge attributes
