"""A parser as its definition has it, slow and obvious: features are strings, and strings have weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conllu import read_conllu
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import Compiled, compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.model import SparseModel

TEMPLATES: list[Any] = [
    ["head.form", "modifier.form"],
    ["head.upos"],
    ["modifier.upos"],
    ["head.upos", "modifier.upos"],
    ["head.upos", "modifier.upos", "direction", "distance"],
    ["head.upos[-1]", "head.upos", "modifier.upos", "modifier.upos[1]"],
    ["modifier.end", "direction", "head.upos[2]"],
    ["head.upos", "between.upos", "modifier.upos"],
    ["between.form", "distance"],
    ["modifier.form", "head.upos", "direction", "direction"],
]
SPEC = FeatureSpec.model_validate(
    {
        "structure": "tree",
        "templates": TEMPLATES,
        "derived": {"end": {"kind": "suffix", "n": 2, "of": "form"}},
    }
)

#: The first distance of each bin, and its name.
_BINS = {1: "1", 2: "2", 3: "3", 4: "4", 5: "5-6", 7: "7-10", 11: "11-20", 21: "21+"}

Row = Sequence[str]


def corpus_of_trees(sentences: int = 60, seed: int = 3) -> Corpus:
    """Generated trees with crossing arcs and the columns form and upos."""
    text = generate("crossing-trees", sentences, seed)
    return read_conllu(text, max_line_bytes=1 << 16, columns=("form", "upos"), label="tree")


def compiled_trees() -> Compiled:
    corpus = corpus_of_trees()
    return compile_corpus(SPEC.resolve(corpus.names, trees=True), corpus)


def random_weights(compiled: Compiled, seed: int, density: float = 0.3) -> Weights:
    """Sparse random weights. Most attributes have none, among them some that others need to be found."""
    problem, rng = compiled.problem, np.random.default_rng(seed)
    count, labels = problem.attributes, len(problem.labels)
    values = np.zeros((problem.rows, problem.width), np.float32)
    values[:count, :labels] = rng.normal(size=(count, labels)) * (rng.random((count, labels)) < density)
    values[:count][rng.random(count) > density] = 0
    return Weights(problem, values.reshape(-1))


def rows_of(corpus: Corpus) -> list[list[list[str]]]:
    """The tokens of each sentence."""
    columns = [[column.vocabulary[i] for i in column.ids.tolist()] for column in corpus.columns]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [rows[a:b] for a, b in pairwise(corpus.offsets.tolist())]


def _value(rows: Sequence[Row], place: str, head: int, modifier: int) -> list[str]:
    """The values of a place at an arc. Words count from 1, and 0 is the position before the first."""
    if place == "direction":
        return ["left" if head < modifier else "right"]
    if place == "distance":
        return [_BINS[max(first for first in _BINS if first <= abs(head - modifier))]]
    side, _, rest = place.partition(".")
    column, _, offset = rest.rstrip("]").partition("[")

    def at(word: int) -> str:
        if word < 1:
            return f"_B{word - 1:+d}"
        if word > len(rows):
            return f"_B+{word - len(rows)}"
        row = rows[word - 1]
        return {"form": row[0], "upos": row[1], "end": row[0][-2:]}[column]

    if side == "between":
        return sorted({at(word) for word in range(min(head, modifier) + 1, max(head, modifier))})
    # Words of one character have no suffix of two.
    value = at((head if side == "head" else modifier) + int(offset or 0))
    return [] if column == "end" and len(value) < 2 else [value]


def features_of(rows: Sequence[Row], head: int, modifier: int) -> list[str]:
    """The names of the features of an arc."""
    found = []
    for places in TEMPLATES:
        joined: list[list[str]] = [[]]
        for place in places:
            joined = [[*each, value] for each in joined for value in _value(rows, place, head, modifier)]
        found += [f"{'|'.join(places)}={'|'.join(values)}" for values in joined]
    return found


@dataclass(frozen=True)
class StringParser:
    """Weights of strings, one for each label."""

    labels: Sequence[str]
    weights: Mapping[str, Sequence[float]]

    @staticmethod
    def of(model: SparseModel) -> "StringParser":
        """Read a model by the names of its attributes."""
        a, weights = model.attributes, dict[str, list[float]]()
        for i in range(a.size):
            own = [0.0] * len(model.labels)
            for k in range(int(a.starts[i]), int(a.starts[i + 1])):
                own[a.labels[k]] = float(a.weights[k])
            assert model.attribute_name(i) not in weights
            weights[model.attribute_name(i)] = own
        return StringParser(model.labels, weights)

    def lanes(self, rows: Sequence[Row], head: int, modifier: int) -> np.ndarray:
        """The scores of an arc and of its relations."""
        known = [self.weights[name] for name in features_of(rows, head, modifier) if name in self.weights]
        return np.sum(known, axis=0) if known else np.zeros(len(self.labels))

    def scores(self, rows: Sequence[Row]) -> np.ndarray:
        """The score of each arc, at [head, modifier]."""
        n = len(rows)
        out = np.zeros((n + 1, n + 1))
        for modifier in range(1, n + 1):
            for head in range(n + 1):
                if head != modifier:
                    out[head, modifier] = self.lanes(rows, head, modifier)[0]
        return out
