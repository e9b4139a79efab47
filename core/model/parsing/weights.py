"""The weights of a parser, as its kernels read them, and their buffers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.jit import kernel, readonly
from tagsmith.core.features.arcs import ArcSlots, Keys
from tagsmith.core.inference.tree.solver import Solver, solver, solver_bytes
from tagsmith.core.model.model import SparseModel

Floats = NDArray[np.float64]


class ArcWeights(NamedTuple):
    """The templates over arcs, the index of their attributes, and the weights."""

    slots: ArcSlots
    cells: Keys  # (cells,) keys of the table
    numbers: Ids  # (cells,) the attribute of each cell
    arcs: NDArray[np.float32]  # (cells,) its weight for arcs
    starts: Places  # the attributes as CSR over labels: label 0 is the arc, the others are relations
    labels: NDArray[np.int16]
    weights: NDArray[np.float32]
    columns: Ids  # the distinct columns of tokens between
    between: Ids  # (templates,) index of the template's column in `columns`, or -1
    relations: int


class ParsingScratch(NamedTuple):
    """Buffers for sentences of up to `longest` words. N = longest + 1, T templates, C columns of tokens between.

    Those of heads hold one sentence, those of modifiers and arcs one modifier.
    """

    heads: Keys  # (N * head parts,) hashes
    begun: Keys  # (T * N,) hash of each template with the part of each head
    modifiers: Keys  # (modifier parts,) hashes
    stirred: Keys  # (modifier parts,) the same, ready to be mixed
    arcs: Keys  # (4 * N,) stirred code of each set of columns of the arc, for each head
    keys: Keys  # (N,)
    near: Ids  # (N,) the heads of `keys`
    hits: Ids  # ((T + 1) * N,) the heads at which each template was found; in the last row, all heads
    counts: Places  # (T + 1,) their number
    numbers: (
        Ids  # (C * N,) each token's value, as a number among the distinct ones of the sentence; -1 if unknown
    )
    codes: Keys  # (C * N,) the stirred code of each distinct value
    between: Ids  # (C * 2 * N,) distinct values between, going left from the modifier, then going right
    until: Ids  # (C * N,) how many of them are before each head
    stamps: Ids  # (N,) where each distinct value was seen
    scores: Floats  # (N,) of the arcs into the modifier
    rows: Ids  # the attributes of one arc
    found: Ids  # (T,) the attribute of each template at one arc, or -1
    lanes: Floats  # (1 + relations,) scores of one arc
    solver: Solver


def arc_weights(model: SparseModel) -> ArcWeights:
    """Lay out the weights of a parser for the kernels."""
    slots, a, table = model.arc_slots, model.attributes, model.table
    arcs = v.zeros(len(table.keys), np.float32)
    _spread(table.keys, table.rows, a.starts, a.labels, a.weights, arcs)
    columns = sorted({column for column in slots.between.tolist() if column >= 0})
    return ArcWeights(
        slots,
        table.keys,
        table.rows,
        readonly(arcs, np.float32),
        a.starts,
        a.labels,
        a.weights,
        readonly(np.array(columns, np.int32), np.int32),
        readonly(
            np.array([columns.index(c) if c >= 0 else -1 for c in slots.between.tolist()], np.int32), np.int32
        ),
        len(model.labels) - 1,
    )


@kernel
def _spread(
    cells: Keys, numbers: Ids, starts: Places, labels: NDArray[np.int16], weights: NDArray[np.float32],
    arcs: NDArray[np.float32],
) -> None:  # fmt: skip
    """Write the weight for arcs of each attribute to its cell."""
    for cell in range(cells.shape[0]):
        if cells[cell] != np.uint64(0):
            for k in range(starts[numbers[cell]], starts[numbers[cell] + 1]):
                if labels[k] == 0:
                    arcs[cell] += weights[k]


def parsing_scratch(w: ArcWeights, longest: int) -> ParsingScratch:
    """Allocate buffers for sentences of up to `longest` words."""
    size, templates, columns = longest + 1, len(w.between), len(w.columns)
    return ParsingScratch(
        heads=np.zeros(size * max(1, len(w.slots.heads.seeds)), np.uint64),
        begun=np.zeros(size * templates, np.uint64),
        modifiers=np.zeros(max(1, len(w.slots.modifiers.seeds)), np.uint64),
        stirred=np.zeros(max(1, len(w.slots.modifiers.seeds)), np.uint64),
        arcs=np.zeros(4 * size, np.uint64),
        keys=np.zeros(size, np.uint64),
        near=np.zeros(size, np.int32),
        hits=np.zeros((templates + 1) * size, np.int32),
        counts=np.zeros(templates + 1, np.int64),
        numbers=np.zeros(columns * size, np.int32),
        codes=np.zeros(columns * size, np.uint64),
        between=np.zeros(columns * 2 * size, np.int32),
        until=np.zeros(columns * size, np.int32),
        stamps=np.zeros(size, np.int32),
        scores=np.zeros(size),
        rows=np.zeros(templates * size if columns else templates, np.int32),
        found=np.zeros(templates, np.int32),
        lanes=np.zeros(1 + w.relations),
        solver=solver(longest),
    )


def parsing_bytes(w: ArcWeights, longest: int) -> int:
    """Estimate the memory of the buffers."""
    templates, columns = len(w.between), len(w.columns)
    per_word = 8 * len(w.slots.heads.seeds) + 16 * templates + 28 * columns + 64
    return (longest + 1) * per_word + solver_bytes(longest)
