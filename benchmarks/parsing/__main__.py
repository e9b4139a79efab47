"""Parsers with the preset `parsing` on English EWT, Danish, Turkish and Spanish, beside UDPipe 1.

    python -m benchmarks.parsing --data ../shared/data --udpipe ../udpipe/bin/python [--language danish] [--part speed]

Gold parts of speech, punctuation counted. Parts, each a cell that is recorded when it is done:

- choice: the trainer and its number of passes, by UAS on the development set, or on every tenth training sentence
  where there is none.
- tagsmith: the chosen setting on the whole training set, and its scores on the test set. Seconds and the peak of
  memory are those of a process that trains and nothing else.
- udpipe: UDPipe on the same sentences, columns and test set, with its default options.
- speed: tokens per second on one thread, alternated, and tokens per second of the processor, which other work on the
  machine disturbs less. Tagsmith goes from strings to heads and relations. UDPipe is timed without reading, and with
  reading the same text in CoNLL-U.
- cost: processor time per sentence by length, and the exponent of the line through them, both in logarithms.

`udpipe.py` says how to install UDPipe. Without `--udpipe`, the parts udpipe and speed are left as recorded. Models are
kept in `--models`, and trained again if they are missing. `--again` measures cells that are recorded.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import common
from benchmarks.parsing import cells, page, runs, udpipe
from benchmarks.parsing.treebanks import TREEBANKS, Treebank, conllu_of, rows_of
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.model.tagger import Tagger

NAME = "parsing"
LANGUAGES = ("english", "danish", "turkish", "spanish")
PARTS = ("choice", "tagsmith", "udpipe", "speed", "cost")
FEATURES = FeatureSpec(preset="parsing")
#: The candidates. A run of k passes ends with the weights that a longer run has after k, so one run has all choices.
TRAINERS: dict[str, dict[str, Any]] = {
    "averaged-perceptron": {"kind": "averaged-perceptron", "passes": 10},
    "mira": {"kind": "mira", "passes": 10},
}
ROUNDS = 5
#: Lengths with fewer sentences are not timed.
LEAST_SENTENCES = 4
#: A length is timed on at least this many tokens.
TIMED_TOKENS = 4_000
#: Shorter sentences take as long as the call does.
FIT_FROM = 10


@dataclass(frozen=True)
class Bench:
    """A treebank with the folders and the interpreter of a run."""

    treebank: Treebank
    data: Path
    models: Path
    python: Path | None

    @property
    def model(self) -> Path:
        return self.models / f"{self.treebank.name}.model"

    @property
    def peer_model(self) -> Path:
        return self.models / f"{self.treebank.name}.udpipe"

    def text(self, part: str) -> Path:
        """Write a part of the treebank for UDPipe."""
        path = self.models / f"{self.treebank.name}.{part}.conllu"
        path.write_text(conllu_of(getattr(self.treebank, part)), encoding="utf-8")
        return path


def run(data: Path, language: str, trainer: dict[str, Any], model: str | None) -> dict[str, Any]:
    """Train in this process. Without a model file, return the scores on dev after each pass."""
    treebank = TREEBANKS[language](data)
    if model is None:
        found = runs.train(FEATURES, trainer, treebank.train, treebank.dev)
        return {"uas": [round(point["dev_score"], 2) for point in found.learned.curve], **found.figures}
    found = runs.train(FEATURES, trainer, treebank.whole)
    figures = {**found.figures, "peak_mib": runs.peak_mib()}
    tagger = runs.saved(found, Path(model))
    return {
        "trainer": trainer,
        "sentences": treebank.whole.sentences,
        "tokens": treebank.whole.tokens,
        **runs.attachment(runs.score(tagger, treebank.test), relations=treebank.relations),
        "templates": len(tagger.model.features.unigrams),
        **figures,
        "size_bytes": Path(model).stat().st_size,
    }


def apart(bench: Bench, trainer: dict[str, Any], model: Path | None) -> dict[str, Any]:
    what = {"data": str(bench.data), "language": bench.treebank.name, "trainer": trainer}
    return cells.apart("benchmarks.parsing", {**what, "model": None if model is None else str(model)})


def chosen(choice: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the trainer with the best score on dev, and the first pass that has it."""
    kind = max(choice, key=lambda name: max(choice[name]["uas"]))
    scores = choice[kind]["uas"]
    return {**TRAINERS[kind], "passes": scores.index(max(scores)) + 1}


def measure_choice(bench: Bench) -> dict[str, Any]:
    """Try the candidates, each a cell."""
    return {
        name: cells.filled(NAME, (bench.treebank.name, "choice", name), partial(apart, bench, trainer, None))
        for name, trainer in TRAINERS.items()
    }


def measure_tagsmith(bench: Bench) -> dict[str, Any]:
    return apart(bench, chosen(measure_choice(bench)), bench.model)


def measure_udpipe(bench: Bench) -> dict[str, Any]:
    """Train UDPipe, or use its model and what was measured when it was trained; score it on the test set."""
    assert bench.python is not None
    facts = bench.peer_model.with_suffix(".json")
    if not facts.exists():
        options = udpipe.options_for(bench.treebank.single_root)
        with udpipe.Peer(bench.python, bench.peer_model.with_suffix(".log")) as peer:
            text = bench.text("whole")
            made = peer.ask("train", text=str(text), model=str(bench.peer_model), options=options)
        facts.write_text(
            json.dumps({"options": options, **made, "measured": common.moment()}), encoding="utf-8"
        )
    with udpipe.Peer(bench.python) as peer:
        peer.ask("open", model=str(bench.peer_model), text=str(bench.text("test")))
        peer.parse()
        scores = runs.agreement(bench.treebank.test, peer.trees())
    training = json.loads(facts.read_text(encoding="utf-8"))
    return {**runs.attachment(scores, relations=bench.treebank.relations), "training": training}


def our_tagger(bench: Bench) -> Tagger:
    """Open the model of the part tagsmith, which is trained again if its file is missing."""
    row = cells.filled(NAME, (bench.treebank.name, "tagsmith"), lambda: measure_tagsmith(bench))
    if not bench.model.exists():
        apart(bench, row["trainer"], bench.model)
    return Tagger.open(bench.model)


def measure_speed(bench: Bench) -> dict[str, Any]:
    """Alternate both parsers on the test set."""
    assert bench.python is not None
    tagger, test = our_tagger(bench), bench.treebank.test
    rows = rows_of(test)
    cells.filled(NAME, (bench.treebank.name, "udpipe"), lambda: measure_udpipe(bench))
    taken: dict[str, list[list[float]]] = {"tagsmith": [], "udpipe": [], "udpipe with reading": []}
    with udpipe.Peer(bench.python) as peer:
        peer.ask("open", model=str(bench.peer_model), text=str(bench.text("test")))
        for _ in range(1 + ROUNDS):
            taken["tagsmith"].append(timed(lambda: tagger.parse(rows)))
            theirs = peer.parse()
            taken["udpipe"].append(theirs["parsing"])
            taken["udpipe with reading"].append(
                [a + b for a, b in zip(theirs["parsing"], theirs["reading"], strict=True)]
            )
    # The first round loads everything.
    seconds, processor = (
        {name: [each[i] for each in rounds[1:]] for name, rounds in taken.items()} for i in (0, 1)
    )
    return {
        "tokens": test.tokens,
        "tokens_per_second": {name: round(test.tokens / median(each)) for name, each in seconds.items()},
        "tokens_per_processor_second": {
            name: round(test.tokens / median(each)) for name, each in processor.items()
        },
        **common.summary(seconds, "tagsmith"),
    }


def timed(function: Callable[[], Any]) -> list[float]:
    """Return the seconds and the processor seconds of a call."""
    began = time.perf_counter(), time.process_time()
    function()
    return [time.perf_counter() - began[0], time.process_time() - began[1]]


def measure_cost(bench: Bench) -> dict[str, Any]:
    """Time sentences of one length at a time."""
    tagger = our_tagger(bench)
    by_length: dict[int, list[Any]] = {}
    for corpus in (bench.treebank.dev, bench.treebank.test):
        for row in rows_of(corpus):
            by_length.setdefault(len(row), []).append(row)
    microseconds = {
        length: round(_each(tagger, length, sentences), 2)
        for length, sentences in sorted(by_length.items())
        if len(sentences) >= LEAST_SENTENCES
    }
    return {"microseconds": {str(n): t for n, t in microseconds.items()}, **fitted(microseconds)}


def _each(tagger: Tagger, length: int, sentences: list[Any]) -> float:
    """Return the microseconds of the processor per sentence of a length."""
    block = sentences * -(-TIMED_TOKENS // (length * len(sentences)))
    return 1e6 * median(timed(lambda: tagger.parse(block))[1] for _ in range(ROUNDS)) / len(block)


def fitted(microseconds: dict[int, float]) -> dict[str, Any]:
    """Fit log time = exponent * log length + c by least squares, over the lengths from `FIT_FROM` on."""
    lengths = np.array([n for n in microseconds if n >= FIT_FROM], np.float64)
    seconds = np.array([microseconds[int(n)] for n in lengths])
    exponent, constant = np.polyfit(np.log(lengths), np.log(seconds), 1)
    errors = np.log(seconds) - exponent * np.log(lengths) - constant
    return {
        "exponent": round(float(exponent), 3),
        "microseconds_at_25": round(float(np.exp(exponent * np.log(25) + constant)), 1),
        "standard_deviation_of_log": round(float(errors.std()), 3),
        "from_length": FIT_FROM,
        "to_length": int(lengths.max()),
    }


MEASURES: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "tagsmith": measure_tagsmith,
    "udpipe": measure_udpipe,
    "speed": measure_speed,
    "cost": measure_cost,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folder of corpora")
    parser.add_argument("--language", choices=LANGUAGES, action="append", help="keep the others' results")
    parser.add_argument("--part", choices=PARTS, action="append", help="only these, and what they need")
    parser.add_argument("--udpipe", type=Path, help="an interpreter that has ufal.udpipe")
    parser.add_argument(
        "--models", type=Path, default=Path("build/parsing"), help="the folder of model files"
    )
    parser.add_argument("--again", action="store_true", help="measure cells that are recorded, too")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        what = json.loads(options.run)
        print(json.dumps(run(Path(what.pop("data")), **what)))
        return
    if options.data is None:
        parser.error("--data is required")
    options.models.mkdir(parents=True, exist_ok=True)
    for language in options.language or LANGUAGES:
        bench = Bench(TREEBANKS[language](options.data), options.data, options.models, options.udpipe)
        for part in options.part or PARTS:
            if part in ("udpipe", "speed") and bench.python is None:
                print(f"{language} {part}: left as recorded, because --udpipe is not given")
            else:
                fill(bench, part, again=options.again)
    page.write()


def fill(bench: Bench, part: str, *, again: bool) -> None:
    """Measure a part of a treebank unless it is recorded, and print it."""
    language = bench.treebank.name
    if again:
        cells.drop(NAME, (language, part))
    if part == "choice":
        found = measure_choice(bench)
    else:
        found = cells.filled(NAME, (language, part), lambda: MEASURES[part](bench))
    print(language, part, json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
