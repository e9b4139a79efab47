"""Small random problems, as the kernels and as the naive twins see them."""

import numpy as np

from tagsmith.core.features.resolved import ExistingWeights
from tagsmith.core.inference.tree.rules import NO_TREES
from tagsmith.core.learn.problem.problem import Problem, Sequences
from tests.naive import Sentence


def random_problem(
    seed: int,
    *,
    sentences: int = 6,
    attributes: int = 7,
    labels: int = 3,
    longest: int = 5,
    edges: bool = True,
    valued: bool = False,
    seen_pairs: bool = False,
    edge_attributes: int = 0,
) -> tuple[Problem, list[Sentence]]:
    """Sentences of 1 to `longest` tokens, each token with 0 to 4 attributes; repeats within a sentence occur.

    Tokens have up to two edge attributes, and one in five has one twice.
    """
    rng, edge_rng = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    twins: list[Sentence] = []
    for _ in range(sentences):
        length = int(rng.integers(1, longest + 1))
        rows = [
            [
                (int(a), float(np.float32(rng.normal())) if valued else 1.0)
                for a in rng.integers(0, attributes, rng.integers(0, 5))
            ]
            for _ in range(length)
        ]
        gold = [int(y) for y in rng.integers(0, labels, length)]
        rich = [_edges(edge_rng, edge_attributes) if t else [] for t in range(length)]
        twins.append(Sentence(rows, gold, rich))
    tokens = [row for s in twins for row in s.attributes]
    cells = [cell for row in tokens for cell in row]
    arrays = Sequences(
        offsets=np.cumsum([0, *(len(s.gold) for s in twins)], dtype=np.int64),
        starts=np.cumsum([0, *(len(row) for row in tokens)], dtype=np.int64),
        rows=np.array([a for a, _ in cells], np.int32),
        values=np.array([x for _, x in cells] if valued else [], np.float32),
        gold=np.array([y for s in twins for y in s.gold], np.int32),
        edge_starts=np.cumsum([0, *(len(row) for s in twins for row in s.edges)], dtype=np.int64)
        if edge_attributes
        else np.empty(0, np.int64),
        edge_rows=np.array([a for s in twins for row in s.edges for a in row], np.int32),
        weights=np.empty(0, np.float32),
        allowed=np.empty(0, np.uint8),
        complete=np.empty(0, np.bool_),
        valued=valued,
        rich=edge_attributes > 0,
        weighted=False,
        partial=False,
        trees=NO_TREES,
    )
    for array in arrays:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    names = tuple(f"L{y}" for y in range(labels))
    return Problem(
        arrays, attributes, names, edges, ExistingWeights(seen_pairs, seen_pairs), edge_attributes
    ), twins


def _edges(rng: np.random.Generator, attributes: int) -> list[int]:
    if not attributes:
        return []
    chosen = [int(a) for a in rng.integers(0, attributes, rng.integers(0, 3))]
    return chosen + chosen[:1] * int(rng.random() < 0.2)
