"""Warm-up of the tree kernels."""

import numpy as np

from tagsmith.core.inference.tree.inside_outside import projective_log_z, projective_marginals
from tagsmith.core.inference.tree.matrix_tree import spanning_log_z, spanning_marginals
from tagsmith.core.inference.tree.projective import projective_tree
from tagsmith.core.inference.tree.scratch import tree_scratch
from tagsmith.core.inference.tree.spanning import spanning_tree


def warm() -> None:
    """Compile the kernels of this package, or load them from the cache."""
    scores, heads, marginals = np.zeros((3, 3)), np.zeros(3, np.int32), np.zeros((3, 3))
    scratch = tree_scratch(2)
    for decode in (spanning_tree, projective_tree):
        decode(scores, True, scratch, heads)
    for log_z in (spanning_log_z, projective_log_z):
        log_z(scores, True, scratch)
    for sums in (spanning_marginals, projective_marginals):
        sums(scores, True, scratch, marginals)
