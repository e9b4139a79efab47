"""The sizes of a problem, from which every trainer estimates its memory."""

from dataclasses import dataclass
from math import isqrt

import numpy as np

from tagsmith.core.inference.tree.solver import solver_bytes
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.weights.pairs import existing_marks


@dataclass(frozen=True, slots=True)
class Sizes:
    """The counts that memory estimates use."""

    rows: int
    width: int
    parameters: int
    cells: int
    tokens: int
    sentences: int
    longest: int
    chain: int  # bytes per token of the chain buffers
    solver: int  # bytes of the tree algorithms for the longest sentence
    marginals: int  # bytes per token of its marginals and of the marginals of the transitions into it

    @property
    def matrix(self) -> int:
        """Bytes of a weight matrix: one float32 per row and label."""
        return 4 * self.rows * self.width

    @property
    def vector(self) -> int:
        """Bytes of a vector with one float64 per parameter."""
        return 8 * self.parameters

    def chains(self, sentences: int) -> int:
        """Return the bytes of the chain buffers for `sentences` sentences at once."""
        return self.chain * self.longest * min(sentences, self.sentences) + self.solver


def sizes_of(problem: Problem) -> Sizes:
    """Compute the sizes of a problem."""
    labels = len(problem.labels)
    numbers = 1 + (labels if problem.rich else 0)  # of a token's marginals and of the transitions into it
    if problem.has_all_weights:
        parameters = (problem.rows - (0 if problem.edges else labels)) * labels
    else:
        parameters = int(np.count_nonzero(existing_marks(problem)))
    return Sizes(
        rows=problem.rows,
        width=problem.width,
        parameters=parameters,
        # A cell is one attribute, of either kind, at one token.
        cells=len(problem.data.rows) + len(problem.data.edge_rows),
        tokens=problem.tokens,
        sentences=problem.sentences,
        longest=problem.longest,
        chain=4 * problem.width * (3 + (2 if problem.data.partial else 1) * numbers),
        solver=solver_bytes(isqrt(problem.longest)) if problem.data.trees.present else 0,
        marginals=4 * problem.width * numbers,
    )
