"""Parsing: the best tree of each sentence, the relations of its arcs, and their probabilities.

The tree is the one with the highest sum of arc scores among those that the model considers (`SparseModel.trees`). The
relation of each of its arcs is the one with the highest score, the first of the training labels among equals.

Probabilities are those of a distribution over trees: arc marginals by the matrix-tree theorem or by inside-outside.
That of a relation is the marginal of its arc times a softmax over the scores of all relations. Models of margin
trainers and perceptrons use the same formulas: they rank well, but their values are not calibrated.
"""

from dataclasses import dataclass
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.jit import inner, kernel
from tagsmith.core.inference.tree.rules import TreeRules
from tagsmith.core.inference.tree.solver import Task, solve
from tagsmith.core.model.parsing.scoring import find_rows, score_relations, score_sentence, start_modifier
from tagsmith.core.model.parsing.weights import ArcWeights, ParsingScratch, parsing_scratch
from tagsmith.core.model.tagger import Coded, Tagger

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Parsed:
    """Trees of coded sentences. Arrays of probabilities are empty unless they were asked for."""

    heads: Ids  # (tokens,) number of the head within the sentence, from 1; 0 is the root
    relations: Ids  # (tokens,) label ids; 0 if the model has no relations
    arc_probabilities: Floats  # (tokens,) of the chosen arcs
    relation_probabilities: (
        Floats  # (tokens,) of the chosen arcs with their relations; empty without relations
    )
    scores: Floats  # (sentences,) of the arcs of the tree
    log_probabilities: Floats  # (sentences,) of the tree, without its relations


class _Output(NamedTuple):
    """Arrays that the parsing kernel fills; see `Parsed`."""

    heads: Ids
    relations: Ids
    arcs: Floats
    labelled: Floats
    scores: Floats
    logs: Floats


@inner
def _label(
    w: ArcWeights, codes: Ids, begin: int, end: int, sums: bool, s: ParsingScratch, out: _Output
) -> None:
    """Choose the relation of each arc of the tree."""
    size = end - begin + 1
    for m in range(1, size):
        start_modifier(w, codes, begin, end, m, s)
        token = begin + m - 1
        best = score_relations(w, find_rows(w, out.heads[token], m, size, s), s)
        out.relations[token] = best
        if sums:
            total = 0.0
            for relation in range(1, w.relations + 1):
                total += exp(s.lanes[relation] - s.lanes[best])
            out.labelled[token] = out.arcs[token] / total


@kernel
def _parse(
    w: ArcWeights, rules: TreeRules, codes: Ids, offsets: Places, sums: bool, s: ParsingScratch, out: _Output
) -> None:
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        n = end - begin
        if n == 0:
            continue
        score_sentence(w, codes, begin, end, s)
        out.scores[sentence] = solve(Task.BEST, rules, n, s.solver)
        for m in range(1, n + 1):
            out.heads[begin + m - 1] = s.solver.heads[m]
        if sums:
            log_z = solve(Task.MARGINALS, rules, n, s.solver)
            out.logs[sentence] = min(out.scores[sentence] - log_z, 0.0)
            for m in range(1, n + 1):
                out.arcs[begin + m - 1] = s.solver.marginals[s.solver.heads[m] * (n + 1) + m]
        if w.relations > 0:
            _label(w, codes, begin, end, sums, s, out)


def parse(tagger: Tagger, coded: Coded, *, probabilities: bool = False) -> Parsed:
    """Parse coded sentences. Raise Invalid if the model is not a parser."""
    w, rules = tagger.arcs, tagger.model.trees
    assert rules is not None
    tokens, sentences = int(coded.offsets[-1]), len(coded.offsets) - 1
    out = _Output(
        heads=np.zeros(tokens, np.int32),
        relations=np.zeros(tokens, np.int32),
        arcs=np.zeros(tokens if probabilities else 0),
        labelled=np.zeros(tokens if probabilities and w.relations else 0),
        scores=np.zeros(sentences),
        logs=np.zeros(sentences if probabilities else 0),
    )
    _parse(w, rules, coded.codes, coded.offsets, probabilities, parsing_scratch(w, coded.longest), out)
    return Parsed(out.heads, out.relations, out.arcs, out.labelled, out.scores, out.logs)
