"""From columns in memory to attributes: the feature index, compared with templates expanded in Python.

    python -m benchmarks.features --data ../shared/data [--rounds 5]

Both start with text that is read and split. Tagsmith codes the columns, computes derived columns, and builds the index
and the attribute rows. The other contender expands the same templates to strings at each token, as users of
python-crfsuite do, and passes them on. It computes derived columns with the same functions, once per token. Contenders
alternate and use one thread. Seconds are processor time, which other work on the machine disturbs least.

Then the cost of derived columns, which depends on the number of distinct values: on a corpus, and on the same corpus
twice.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import common, crfsuite, learners
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.features import preview
from tagsmith.core.features.columns.coder import Coder
from tagsmith.core.features.index import build, slots_of
from tagsmith.core.features.resolved import Features
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.features.templates.template import Template
from tagsmith.core.pipeline import warm

#: Targets: speed-up, and the maximum increase for twice the text, with a margin for noise.
FASTER, DEARER = 8.0, 1.1
#: Deriving takes a fifth of a second and varies by a quarter on a noisy machine, so it gets this many times the rounds.
MORE_ROUNDS = 5
#: Number of sentences whose features are compared by name.
SAMPLE = 100

WORDS = FeatureSpec(preset="chunking")
DERIVED = FeatureSpec.model_validate(
    {
        "templates": "\n".join(
            [f"U{row:+d}:%x[{row},0]" for row in range(-2, 3)]
            + [f"UL{row:+d}:%x[{row},low]" for row in range(-1, 2)]
            + [f"US{row:+d}:%x[{row},shape]" for row in range(-1, 2)]
            + [f"UO{row:+d}:%x[{row},orth]" for row in range(-1, 2)]
            + ["UWW:%x[-1,0]/%x[0,0]", "USS:%x[-1,shape]/%x[0,shape]/%x[1,shape]", "B"]
        ),
        "derived": {
            "low": {"kind": "lower"},
            "shape": {"kind": "collapsed-shape"},
            "orth": {"kind": "orthography"},
        },
    }
)


@dataclass(frozen=True)
class Task:
    corpus: str
    features: FeatureSpec
    raw: bytes


def processor(function: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    began = time.process_time()
    function()
    return time.process_time() - began


def ours(features: Features, corpus: Corpus) -> int:
    """Attributes of a corpus in memory."""
    coder = Coder.of(features, corpus)
    codes = coder.code_corpus(corpus)
    index, _ = build(slots_of(features, coder.vocabularies), codes, corpus.offsets, 1)
    return index.size


def theirs(features: Features, data: list[crfsuite.Sentence]) -> None:
    """The same templates expanded in Python and passed to python-crfsuite."""
    trainer = crfsuite.Timed()
    templates, functions = numbered(features), derivations(features)
    for sentence in data:
        rows = extended(sentence, features.columns, functions)
        trainer.append(crfsuite.expand(rows, templates), [row[-1] for row in sentence])


#: From the values of a column to those of a derived one.
Function = Callable[[Sequence[str]], Sequence[str | None]]


def derivations(features: Features) -> list[tuple[int, Function]]:
    """The column each derived one comes from, and its function."""
    return [(chain.of, chain.values) for _, chain in features.derived]


def extended(
    sentence: crfsuite.Sentence, columns: int, functions: list[tuple[int, Function]]
) -> list[list[Any]]:
    """Rows with the derived columns behind the others."""
    made = [function([row[of] for row in sentence]) for of, function in functions]
    return [[*row[:columns], *derived] for row, *derived in zip(sentence, *made, strict=True)]


def check(features: Features, corpus: Corpus, data: list[crfsuite.Sentence]) -> None:
    """Check that both contenders make the same features at each token."""
    templates, functions = numbered(features), derivations(features)
    expanded = [
        names
        for sentence in data
        for names in crfsuite.expand(extended(sentence, features.columns, functions), templates)
    ]
    if expanded != preview.names(features, corpus):
        raise AssertionError("the contenders do not make the same features")


def numbered(features: Features) -> list[Template]:
    """The templates with their columns by number, derived ones behind the others."""
    return [
        replace(template, slots=tuple(replace(place.slot, column=place.column) for place in places))
        for template, places in zip(features.unigrams, features.slots, strict=True)
    ]


def index_build(task: Task, rounds: int) -> dict[str, Any]:
    corpus, data = learners.corpus(task.raw), crfsuite.sentences(task.raw)
    features = task.features.resolve(corpus.names)
    attributes = ours(features, corpus)
    check(features, corpus.subset(np.arange(SAMPLE)), data[:SAMPLE])
    contenders = {
        "tagsmith": lambda: processor(lambda: ours(features, corpus)),
        "python-crfsuite": lambda: processor(lambda: theirs(features, data)),
    }
    result = common.summary(common.alternate(contenders, rounds), "tagsmith")
    return {
        "corpus": task.corpus,
        "tokens": corpus.tokens,
        "templates": len(features.unigrams),
        "derived_columns": len(features.derived),
        "attributes": attributes,
        "seconds": result,
        "verdict": result["python-crfsuite"]["times_ours"] >= FASTER,
    }


def derived_cost(task: Task, rounds: int) -> dict[str, Any]:
    """Measure derived columns of a corpus, and of the same text twice."""
    once = learners.corpus(task.raw)
    twice = once.subset(np.tile(np.arange(once.sentences), 2))
    features = task.features.resolve(once.names)
    contenders = {
        "once": lambda: processor(lambda: Coder.of(features, once)),
        "twice": lambda: processor(lambda: Coder.of(features, twice)),
    }
    seconds = common.alternate(contenders, rounds)
    ratio = median(two / one for one, two in zip(seconds["once"], seconds["twice"], strict=True))
    return {
        "corpus": task.corpus,
        "tokens": [once.tokens, twice.tokens],
        "distinct_values": len(once.columns[0].vocabulary),
        "derived_columns": len(features.derived),
        "seconds": common.summary(seconds, "once"),
        "ratio": round(ratio, 3),
        "verdict": ratio <= DEARER,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    chunks = common.read(options.data / "conll2000" / "train.txt")
    genes = common.read(options.data / "jnlpba2004" / "Genia4ERtask1.iob2")
    warm.training()
    builds = {
        "conll2000": Task("CoNLL-2000, CRF++'s 19 templates", WORDS, chunks),
        "jnlpba": Task("JNLPBA 2004, words", WORDS, genes),
        "jnlpba_derived": Task("JNLPBA 2004, words and derived columns", DERIVED, genes),
    }
    result: dict[str, Any] = {
        "index_build": {name: index_build(task, options.rounds) for name, task in builds.items()},
        "derived_columns": derived_cost(builds["jnlpba_derived"], MORE_ROUNDS * options.rounds),
    }
    print(common.record("features", result).read_text())


if __name__ == "__main__":
    main()
