"""Template selection before training, by information gain about the labels (Martins et al. 2011, Eq. 16).

The paper ranks the templates of a parser, where y is whether an arc is in the tree. For trees, it is the same here. For
chains, y is a label:

    IG_m = sum over features f of template m, labels y:  P(f, y) log2( P(f, y) / (P(f) P(y)) )

The probabilities are relative frequencies over the tokens of the training corpus. For a template of label pairs, y is
the pair, and the tokens are those with a predecessor. Templates with the same features count as one, and are kept or
dropped together. Bag templates and the plain label pair are always kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import kernel, readonly
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.features.arc_index import ArcIndex
from tagsmith.core.features.index import FeatureIndex
from tagsmith.core.features.lexicon.lexicon import NO_LEXICONS, Lexicons
from tagsmith.core.features.preview import label_pairs
from tagsmith.core.features.resolve import only
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.features.templates.template import Template
from tagsmith.core.learn.problem.occurrences import Occurrences, edge_occurrences_of, occurrences_of
from tagsmith.core.learn.problem.problem import Compiled, Problem, compile_corpus


@dataclass(frozen=True, slots=True)
class Ranked:
    """A template, its information gain in bits, its number of attributes, and whether it is kept."""

    template: Template
    gain: float
    attributes: int
    kept: bool = False


def compile_selected(
    spec: FeatureSpec, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS
) -> tuple[Compiled, list[Ranked]]:
    """Compile a training corpus with the templates that the spec selects, and return their ranking.

    Without a selection, all templates are kept and the ranking is empty.
    """
    compiled = compile_corpus(spec.resolve(corpus.names, trees=corpus.trees is not None), corpus, lexicons)
    if spec.select is None:
        return compiled, []
    ranked = rank(compiled, spec.select.templates)
    features, dropped = compiled.features, {each.template for each in ranked if not each.kept}
    # Compile again to free the data of the dropped templates: the index of hundreds of templates is large.
    del compiled
    kept = {
        template for template in (*features.templates, *features.bag_templates) if template not in dropped
    }
    return compile_corpus(only(features, kept), corpus, lexicons), ranked


def record(ranked: Sequence[Ranked]) -> dict[str, Any]:
    """Return the ranking as stored with a version, with templates as written in the spec."""
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
    """Compute the gain of each template of a compiled corpus and keep the best. Ties go to the earlier template."""
    problem, features = compiled.problem, compiled.features
    labels, ways = problem.data.gold, len(problem.labels)
    if problem.data.trees.present:  # an arc is in the gold tree or not
        labels, ways = (labels < 0).astype(np.int32), 2
    ranked = _measured(features.unigrams, compiled.index, occurrences_of(problem), labels, ways)
    if compiled.edge_index is not None:
        occurrences = edge_occurrences_of(problem)
        ranked += _measured(
            features.rich, compiled.edge_index, occurrences, _pairs(problem), len(problem.labels) ** 2
        )
    order = sorted(range(len(ranked)), key=lambda i: -ranked[i].gain)
    # Templates with the same features have the same gain and count once towards the budget.
    chosen: dict[tuple[str, str], None] = {}
    for i in order:
        chosen.setdefault(ranked[i].template.feature_group)
    best = set(list(chosen)[:budget])
    return [
        Ranked(each.template, each.gain, each.attributes, each.template.feature_group in best)
        for each in ranked
    ]


def _pairs(problem: Problem) -> NDArray[np.int32]:
    """Return the label pair that ends at each token; -1 at the first token of a sentence and beside open labels."""
    gold = problem.data.gold.astype(np.int64)
    pairs = label_pairs(gold, problem.data.offsets, len(problem.labels)).astype(np.int32)
    pairs[(gold < 0) | (np.roll(gold, 1) < 0)] = -1
    return pairs


def _measured(
    templates: Sequence[Template],
    index: FeatureIndex | ArcIndex,
    occurrences: Occurrences,
    joins: NDArray[np.int32],
    ways: int,
) -> list[Ranked]:
    """Compute the gains of the templates of one kind. `joins` is the label or pair of each token, below `ways`."""
    if not templates:
        return []
    first = {template.feature_group: i for i, template in reversed(list(enumerate(templates)))}
    same_as = np.array([first[template.feature_group] for template in templates], np.int32)
    template_of = same_as[index.seen_at % len(templates)]
    gains, distinct = np.zeros(len(templates)), np.bincount(template_of, minlength=len(templates)).tolist()
    totals = np.bincount(joins[joins >= 0], minlength=ways)
    _add_gains(
        occurrences, readonly(joins, np.int32), readonly(totals, np.int64), int(totals.sum()),
        readonly(template_of, np.int32), np.zeros(ways, np.int64), gains,
    )  # fmt: skip
    return [
        Ranked(template, float(gains[same]), distinct[same])
        for template, same in zip(templates, same_as.tolist(), strict=True)
    ]


@kernel
def _add_gains(
    occurrences: Occurrences, joins: NDArray[np.int32], totals: NDArray[np.int64], tokens: int,
    template_of: NDArray[np.int32], counts: NDArray[np.int64], gains: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add the information gain of each attribute to that of its template. `counts` is zero before and after."""
    for a in range(template_of.shape[0]):
        begin, end, present = occurrences.starts[a], occurrences.starts[a + 1], 0
        for k in range(begin, end):
            y = joins[occurrences.tokens[k]]
            if y >= 0:
                counts[y] += 1
                present += 1
        information = 0.0
        for k in range(begin, end):
            y = joins[occurrences.tokens[k]]
            n = counts[y] if y >= 0 else 0
            if n > 0:
                # P(f, y) / (P(f) P(y)), where each probability is a count divided by the number of tokens.
                information += n * log2(n * float(tokens) / (float(present) * totals[y]))
                counts[y] = 0
        gains[template_of[a]] += information / tokens
