"""Chinese word segmentation: PKU and SXU with and without dictionary features (Sun et al. 2014, section 4.2).

    python -m benchmarks.segmentation --data ../shared/data [--corpus sxu] [--rows "without dictionaries"]

The preset `segmentation`, the same without the words that it gathers from the training text, and each of the two with
statistics of raw text: accessor variety and mutual information. The raw text is the training text without word
boundaries, with full-width forms converted, so it adds no information. Four labels, one thread. F is that of words, as
in the SIGHAN bakeoffs. Words that are not in the training text are out of vocabulary. For PKU, the training text is the
one that its training set appears to be made from, not the official file. It has full-width digits and letters where the
test set has plain ones; the preset treats both alike.
"""

import argparse
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import common, zhou
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.segmented import read_segmented
from tagsmith.core.evaluate.segmentation import evaluate, vocabulary_score
from tagsmith.core.features.lexicon.lexicon import Lexicon
from tagsmith.core.features.presets import PRESETS
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.problem.problem import gold_of
from tagsmith.core.model.tagger import Coded, Tagger
from tagsmith.core.pipeline import warm
from tagsmith.core.pipeline.train import train

MAX_LINE_BYTES = 1 << 20
#: Targets with dictionaries.
WANTED = {"pku": 94.5, "sxu": 95.5}
TRAINER: dict[str, Any] = {"kind": "sgd", "l2": 1.0, "passes": 15}
WITH = FeatureSpec(preset="segmentation")
#: The id of the raw text in specs.
RAW = "lex_" + "0" * 40


def without() -> FeatureSpec:
    """The preset's templates that name no column gathered from words."""
    text, derived = PRESETS["segmentation"](1)
    gathered = [name for name, column in derived.items() if getattr(column, "gathers", False)]
    kept = [line for line in text.split("\n") if not any(f",{name}]" in line for name in gathered)]
    return FeatureSpec.model_validate({"templates": "\n".join(kept), "derived": dict(derived)})


def with_raw_text(features: FeatureSpec) -> FeatureSpec:
    """Return features with statistics of raw text (Sun and Xu 2011).

    These are the left variety of n-grams that start here, the right variety of n-grams that end here, and the mutual
    information of this character with its neighbours.
    """
    text, derived = (
        (features.templates, features.derived) if features.templates else PRESETS["segmentation"](1)
    )
    lines, columns = [], {}
    for n in range(2, 5):
        columns |= {f"left{n}": _raw("left-variety", n), f"right{n}": _raw("right-variety", n)}
        lines += [f"UVL{n}:%x[0,left{n}]", f"UVR{n}:%x[{1 - n},right{n}]"]
        lines += [f"UVM{n}:%x[{1 - n},right{n}]/%x[1,left{n}]"]
    columns["together"] = _raw("information", 2)
    lines += ["UI-:%x[-1,together]", "UI+:%x[0,together]", "UI:%x[-1,together]/%x[0,together]"]
    return FeatureSpec.model_validate(
        {"templates": "\n".join([str(text), *lines]), "derived": {**derived, **columns}}
    )


def _raw(measure: str, n: int) -> dict[str, Any]:
    return {"kind": "text", "lexicon": RAW, "measure": measure, "n": n, "fold_width": True}


def raw_text(training: Corpus) -> Lexicon:
    """The characters of the training text, one sentence per line."""
    column = training.columns[0]
    characters = [unicodedata.normalize("NFKC", each) for each in column.vocabulary.strings()]
    ids = column.ids.tolist()
    return Lexicon(
        "text",
        tuple("".join(characters[i] for i in ids[a:b]) for a, b in pairwise(training.offsets.tolist())),
        (),
    )


def corpora(data: Path, name: str) -> Iterator[Corpus]:
    """Training and test part."""
    if name == "pku":
        folder = data / "pku_cws"
        parts = ((folder / "199801.txt", True), (folder / "pku_test_gold.utf8", False))
    else:
        parts = ((data / "sxu_cws" / "train.txt", False), (data / "sxu_cws" / "test.txt", False))
    for path, tagged in parts:
        lines = (" ".join(words) for words in zhou.segmented(common.read(path), tagged=tagged))
        yield read_segmented(["\n".join(lines).encode()], max_line_bytes=MAX_LINE_BYTES)


def measured(features: FeatureSpec, training: Corpus, test: Corpus) -> dict[str, Any]:
    """Train, tag the test set with the model alone, and score."""
    spec = TrainSpec.model_validate(
        {
            "kind": "train",
            "model": "benchmark",
            "corpus": "crp_benchmark",
            "features": features,
            "trainer": TRAINER,
        }
    )
    began = time.perf_counter()
    result = finished(train(spec, training, None, lexicons={RAW: raw_text(training)}))
    seconds = time.perf_counter() - began
    tagger = Tagger(result.model)
    found = gold_of(test, tagger.model.labels)
    names, gold = found.labels, found.ids
    began = time.perf_counter()
    predicted = tagger.decode(Coded(tagger.model.coder.code_corpus(test), test.offsets))
    tagging = time.perf_counter() - began
    scores = evaluate(names, gold, predicted, test.offsets)
    vocabulary = vocabulary_score(training, test, names, predicted)
    assert vocabulary is not None
    return {
        "f1": round(scores.f1, 2),
        "precision": round(scores.precision, 2),
        "recall": round(scores.recall, 2),
        **{key: round(value, 2) for key, value in asdict(vocabulary).items()},
        "active_features": result.active_features,
        "train_seconds": round(result.train_seconds, 1),
        "seconds_with_compiling": round(seconds, 1),
        "characters_tagged_a_second": round(test.tokens / tagging),
    }


def rows() -> dict[str, FeatureSpec]:
    """Return the rows to compare."""
    plain = without()
    return {
        "without dictionaries": plain,
        "with dictionaries": WITH,
        "without dictionaries, with raw text": with_raw_text(plain),
        "with dictionaries and raw text": with_raw_text(WITH),
    }


def measure(data: Path, name: str, chosen: dict[str, FeatureSpec], earlier: dict[str, Any]) -> dict[str, Any]:
    """Measure the given rows of a corpus; keep those measured earlier."""
    training, test = corpora(data, name)
    table = dict(earlier.get("table", {}))
    for row, features in chosen.items():
        table[row] = {**measured(features, training, test), "measured": common.moment()}
        print(name, row, table[row], flush=True)
    return {
        "trainer": TRAINER,
        "characters": [training.tokens, test.tokens],
        "table": table,
        "wanted": WANTED[name],
        "met": table["with dictionaries"]["f1"] >= WANTED[name] if "with dictionaries" in table else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--corpus", choices=sorted(WANTED), help="only this one")
    parser.add_argument(
        "--rows", choices=list(rows()), action="append", help="only this one; may be repeated"
    )
    options = parser.parse_args()
    spec = TrainSpec.model_validate(
        {"kind": "train", "model": "benchmark", "corpus": "crp_benchmark", "trainer": TRAINER}
    )
    warm.trainer(spec.trainer)
    result = common.recorded("segmentation")
    for name in [options.corpus] if options.corpus else sorted(WANTED):
        chosen = {row: features for row, features in rows().items() if row in (options.rows or rows())}
        result[name] = measure(options.data, name, chosen, result.get(name, {}))
        path = common.record("segmentation", result)
    print(path.read_text())


if __name__ == "__main__":
    main()
