"""Figure 3 and Table 3 of Martins, Smith, Aguiar and Figueiredo (2011): template selection for dependency parsers.

    python -m benchmarks.parsing_selection --data ../shared/data [--language spanish] [--method "group lasso"]

The 684 templates of the preset `parsing-wide`, no relations, non-projective trees, as in the paper. Methods:

- group lasso, coarse-to-fine: `sparseptron` with that kind of groups and a budget of 200, 300 and 400 templates, with
  its default readings: 5 passes of selection, and 10 of MIRA with the features that are not zero.
- information gain: the templates with the highest gain (Eq. 16), as many, and 15 passes of MIRA.
- lasso: `sparseptron` with `groups` `"lasso"`, for several strengths.
- all: 15 passes of MIRA with all templates.

Every cell is a process of its own and is recorded when it is done; a run that was killed continues with the next one.
A cell may use 12 GB. No setting is chosen by a test score: the table names, for each method, the budget or strength
with the best UAS on held-out sentences. Treebanks other than English hold out every tenth training sentence, or have a
development file; English is the first 2,000 sentences of EWT. Of Spanish and Danish, sentences of more than 40 words
are left out, and of Danish the last ones, so that a cell fits into memory.
"""

import argparse
import json
import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.parsing import cells, page, runs
from benchmarks.parsing.treebanks import TREEBANKS, Treebank
from tagsmith.core.features.arc_index import ArcIndex
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.features.templates.template import ARC_COLUMNS, Template

NAME = "parsing_selection"
LANGUAGES = ("spanish", "turkish", "english", "slovene", "japanese", "danish")
METHODS = ("group lasso", "coarse-to-fine", "information gain", "lasso", "all")
BUDGETS = (200, 300, 400)
#: 1 / C of the paper.
STRENGTHS = (0.5, 1.0, 2.0, 4.0)
PASSES = 15
#: Sentences between two proximal steps, as in the paper; in smaller treebanks one step per pass.
EVERY = 1000
#: The paper chose small data.
ENGLISH_SENTENCES = 2000
#: A cell that needs more fails.
MAX_BYTES = 12 << 30
#: A possible arc takes up to 10 KB, for the numbers of its features. Larger treebanks are cut to fit into memory: first
#: their long sentences are left out, which have most of the arcs, then those at the end.
MOST_ARCS, MOST_WORDS = 1_200_000, 40
WIDE: dict[str, Any] = {"preset": "parsing-wide", "relations": False, "projective": False}


def treebank_of(data: Path, language: str) -> Treebank:
    """Read a treebank, with the training sentences of the experiment."""
    found = TREEBANKS[language](data)
    train = found.train.subset(np.arange(ENGLISH_SENTENCES)) if language == "english" else found.train
    return replace(found, train=train.subset(in_memory(np.diff(train.offsets))))


def in_memory(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sentences that fit into memory."""
    if (lengths**2).sum() <= MOST_ARCS:
        return np.arange(lengths.size)
    short = np.flatnonzero(lengths <= MOST_WORDS)
    return short[np.cumsum(lengths[short] ** 2) <= MOST_ARCS]


def settings(method: str) -> dict[str, float]:
    """Return the cells of a method by name, each with its budget or strength."""
    if method == "all":
        return {"all": 0}
    return {f"{method}, {value:g}": value for value in (STRENGTHS if method == "lasso" else BUDGETS)}


def spec_of(method: str, value: float, sentences: int) -> tuple[FeatureSpec, dict[str, Any]]:
    """Return the features and the trainer of a cell."""
    features, trainer = dict(WIDE), {"kind": "mira", "passes": PASSES}
    if method == "information gain":
        features["select"] = {"kind": "information-gain", "templates": int(value)}
    elif method != "all":
        trainer = {"kind": "sparseptron", "every": min(EVERY, sentences)}
        if method == "lasso":
            trainer |= {"groups": "lasso", "strength": value}
        else:
            groups = "template" if method == "group lasso" else method
            trainer |= {"groups": groups, "budget": int(value)}
    return FeatureSpec.model_validate(features), trainer


def run(data: Path, language: str, method: str, value: float, sentences: int | None) -> dict[str, Any]:
    """Measure a cell in this process."""
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
    treebank = treebank_of(data, language)
    corpus = treebank.train if sentences is None else treebank.train.subset(np.arange(sentences))
    features, trainer = spec_of(method, value, corpus.sentences)
    trained = runs.train(features, trainer, corpus)
    figures = {**trained.figures, "peak_mib": runs.peak_mib()}
    kept, right = kept_templates(trained), runs.correct(trained, treebank.test)
    return {
        "sentences": corpus.sentences,
        "tokens": corpus.tokens,
        "uas_dev": round(100 * sum(runs.correct(trained, treebank.dev)) / treebank.dev.tokens, 2),
        "uas_test": round(100 * sum(right) / treebank.test.tokens, 2),
        **figures,
        "templates": len(kept),
        "kept": kinds_of(kept),
        "considered": kinds_of(trained.compiled.features.unigrams),
        # For intervals of differences.
        "correct_by_sentence": " ".join(map(str, right)),
    }


def kept_templates(trained: runs.Trained) -> list[Template]:
    """Return the templates that have a feature in the model."""
    compiled = trained.compiled
    assert isinstance(compiled.index, ArcIndex)
    live = np.flatnonzero(trained.learned.weights.attribute_rows.any(axis=1))
    templates = compiled.features.unigrams
    return [templates[i] for i in np.unique(compiled.index.seen_at[live] % len(templates))]


def kinds_of(templates: Sequence[Template]) -> dict[str, int]:
    """Count templates by kind, and those with the direction and with the distance of the arc."""
    found = Counter(template.name.partition(":")[0] for template in templates)
    for column in ARC_COLUMNS:
        found[column] = sum(
            any(slot.anchor == "arc" and slot.column == column for slot in template.slots)
            for template in templates
        )
    return dict(found)


def wanted(languages: list[str], methods: list[str]) -> Iterator[tuple[str, str, str, float]]:
    """Yield language, method, name and value of the cells, in order."""
    for language in languages:
        for method in methods:
            for name, value in settings(method).items():
                yield language, method, name, value


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folder of corpora")
    parser.add_argument("--language", choices=LANGUAGES, action="append", help="keep the others' results")
    parser.add_argument("--method", choices=METHODS, action="append", help="keep the others' results")
    parser.add_argument(
        "--sentences", type=int, help="try a run on this many sentences, without recording it"
    )
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        what = json.loads(options.run)
        print(json.dumps(run(Path(what.pop("data")), **what)))
        return
    if options.data is None:
        parser.error("--data is required")
    for language, method, name, value in wanted(
        options.language or list(LANGUAGES), options.method or list(METHODS)
    ):
        what = {"data": str(options.data), "language": language, "method": method, "value": value}
        what["sentences"] = options.sentences

        def measure(what: dict[str, Any] = what) -> dict[str, Any]:
            return cells.apart("benchmarks.parsing_selection", what)

        row = measure() if options.sentences else cells.filled(NAME, (language, name), measure)
        print(language, name, {k: v for k, v in row.items() if not isinstance(v, dict | str)}, flush=True)
    if not options.sentences:
        page.draw_selection()
        page.write()


if __name__ == "__main__":
    main()
