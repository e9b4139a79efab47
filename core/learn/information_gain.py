"""Choosing templates before training: those whose features tell most about the labels (Martins et al. 2011, Eq. 16).

The paper ranks templates of a parser, where an arc is there or not; here a feature goes with one of the labels:

    IG_m = sum over features f of template m, labels y:  P(f, y) log2( P(f, y) / (P(f) P(y)) )

with probabilities estimated by counting over the tokens of the training corpus. A template of label pairs is measured
with the pairs, over the tokens that have one before them. Templates that make the same features are one, and are
kept or dropped together. Templates over columns of several values, and the pair of labels by itself, always stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.corpus.corpus import Corpus
from core.features.index import FeatureIndex
from core.features.matching import NO_LEXICONS, Lexicons
from core.features.preview import label_pairs
from core.features.settled import only
from core.features.spec import FeatureSpec
from core.features.template import Template
from core.jit import kernel, readonly
from core.learn.pairs import Occurrences, edge_occurrences_of, occurrences_of
from core.learn.problem import Compiled, Problem, compile_corpus


@dataclass(frozen=True, slots=True)
class Ranked:
    """A template, what it was found to tell in bits, the attributes it makes, and whether it was kept."""

    template: Template
    gain: float
    attributes: int
    kept: bool = False


def compile_selected(
    spec: FeatureSpec, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS
) -> tuple[Compiled, list[Ranked]]:
    """Compile a training corpus with the templates that the spec selects, and tell how they ranked.

    Without a selection all templates stay and none is ranked.
    """
    compiled = compile_corpus(spec.resolve(corpus.names), corpus, lexicons)
    if spec.select is None:
        return compiled, []
    ranked = rank(compiled, spec.select.templates)
    features, dropped = compiled.features, {each.template for each in ranked if not each.kept}
    # Compiled anew, so that nothing of what was dropped is held: the index of hundreds of templates is large.
    del compiled
    kept = {template for template in (*features.templates, *features.over_several) if template not in dropped}
    return compile_corpus(only(features, kept), corpus, lexicons), ranked


def record(ranked: Sequence[Ranked]) -> dict[str, Any]:
    """What a version keeps of a ranking: templates as the spec has them."""
    return {
        "kind": "information-gain",
        "templates": [
            {
                "name": each.template.name,
                "edge": each.template.kind == "B",
                "gain": each.gain,
                "attributes": each.attributes,
                "kept": each.kept,
            }
            for each in ranked
        ],
    }


def rank(compiled: Compiled, budget: int) -> list[Ranked]:
    """Measure the templates of a compiled corpus and keep the best, the earlier ones where they tell the same."""
    problem, features = compiled.problem, compiled.features
    ranked = _measured(
        features.unigrams, compiled.index, occurrences_of(problem), problem.data.gold, len(problem.labels)
    )
    if compiled.edge_index is not None:
        occurrences = edge_occurrences_of(problem)
        ranked += _measured(
            features.rich, compiled.edge_index, occurrences, _pairs(problem), len(problem.labels) ** 2
        )
    order = sorted(range(len(ranked)), key=lambda i: -ranked[i].gain)
    # Templates that make the same features have the same gain, and take one place together.
    chosen: dict[tuple[str, str], None] = {}
    for i in order:
        chosen.setdefault(ranked[i].template.made)
    best = set(list(chosen)[:budget])
    return [Ranked(each.template, each.gain, each.attributes, each.template.made in best) for each in ranked]


def _pairs(problem: Problem) -> NDArray[np.int32]:
    """The pair of labels that ends at each token, -1 at the first of a sentence."""
    labels = len(problem.labels)
    return label_pairs(problem.data.gold.astype(np.int64), problem.data.offsets, labels).astype(np.int32)


def _measured(
    templates: Sequence[Template],
    index: FeatureIndex,
    occurrences: Occurrences,
    joins: NDArray[np.int32],
    ways: int,
) -> list[Ranked]:
    """Measure the templates of one kind; `joins` is what a feature goes with at each token, one of so many `ways`."""
    if not templates:
        return []
    first = {template.made: i for i, template in reversed(list(enumerate(templates)))}
    same_as = np.array([first[template.made] for template in templates], np.int32)
    template_of = same_as[index.seen_at % len(templates)]
    gains, made = np.zeros(len(templates)), np.bincount(template_of, minlength=len(templates)).tolist()
    totals = np.bincount(joins[joins >= 0], minlength=ways)
    _add_gains(
        occurrences, readonly(joins, np.int32), readonly(totals, np.int64), int(totals.sum()),
        readonly(template_of, np.int32), np.zeros(ways, np.int64), gains,
    )  # fmt: skip
    return [
        Ranked(template, float(gains[same]), made[same])
        for template, same in zip(templates, same_as.tolist(), strict=True)
    ]


@kernel
def _add_gains(
    occurrences: Occurrences, joins: NDArray[np.int32], totals: NDArray[np.int64], tokens: int,
    template_of: NDArray[np.int32], counts: NDArray[np.int64], gains: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add what each attribute tells to its template's gain. `counts` is zero before and after."""
    for a in range(template_of.shape[0]):
        begin, end = occurrences.starts[a], occurrences.starts[a + 1]
        for k in range(begin, end):
            counts[joins[occurrences.tokens[k]]] += 1
        told = 0.0
        for k in range(begin, end):
            y = joins[occurrences.tokens[k]]
            n = counts[y]
            if n > 0:
                # P(f, y) / (P(f) P(y)), every probability a count over all tokens.
                told += n * log2(n * float(tokens) / (float(end - begin) * totals[y]))
                counts[y] = 0
        gains[template_of[a]] += told / tokens
