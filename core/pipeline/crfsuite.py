"""What sklearn-crfsuite and python-crfsuite give their users, over our models: options, a tagger, a training log."""

import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.learn.run.progress import Progress
from tagsmith.core.model.inspection import attribute_names
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.tagger import Sentence, Tagger, score
from tagsmith.core.pipeline.estimator import marginals_of
from tagsmith.core.pipeline.train import TrainResult

#: The most passes of a trainer, for algorithms without a limit.
UNLIMITED = 100_000
#: CRFsuite's own defaults.
MAX_ITERATIONS = {"lbfgs": UNLIMITED, "l2sgd": 1000, "ap": 100, "pa": 100, "arow": 100}
LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")


def spec_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Translate options of CRFsuite to a spec. Options that are None keep CRFsuite's default.

    CRFsuite minimises loss + c1 |w| + c2 |w|^2; ours has l2 / 2 as the factor of |w|^2.
    """
    given = {name: value for name, value in options.items() if value is not None}
    algorithm = given.get("algorithm", "lbfgs")
    if algorithm not in MAX_ITERATIONS:
        raise ValueError(f"Unknown algorithm {algorithm!r}. Use one of: {', '.join(MAX_ITERATIONS)}.")
    if given.get("linesearch", LINE_SEARCHES[0]) not in LINE_SEARCHES:
        raise ValueError(
            f"Unknown linesearch {given['linesearch']!r}. Use one of: {', '.join(LINE_SEARCHES)}."
        )
    if algorithm == "l2sgd" and given.get("c1"):
        raise ValueError('c1 has no meaning for algorithm="l2sgd". Use algorithm="lbfgs", or leave c1 out.')
    passes = min(int(given.get("max_iterations", MAX_ITERATIONS[algorithm])), UNLIMITED)
    trainer, stop = _TRAINERS[algorithm](given)
    return {
        "trainer": {**trainer, "passes": passes},
        "features": {
            "pairs": _existing(given.get("all_possible_states")),
            "transitions": _existing(given.get("all_possible_transitions")),
            "min_frequency": float(given.get("min_freq", 0.0)),
        },
        "stop": stop,
    }


def _existing(every: bool | None) -> str:
    return "all" if every else "seen"


def _lbfgs(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """With `c1` this is OWL-QN. CRFsuite's `delta` is the gain of `period` iterations, our tolerance that of one."""
    c1, c2 = float(given.get("c1", 0.0)), float(given.get("c2", 1.0))
    kind = {"kind": "owlqn", "l1": c1} if c1 > 0 else {"kind": "lbfgs"}
    if c1 < 0:
        raise ValueError("c1 must not be negative.")
    tolerance = float(given.get("delta", 1e-5)) / _period(given)
    memory = min(int(given.get("num_memories", 6)), 100)
    return {**kind, "l2": 2 * c2, "tolerance": tolerance, "memory": memory}, {}


def _l2sgd(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    delta, period = float(given.get("delta", 1e-5)), _period(given)
    schedule = {"kind": "bottou"}
    trainer = {
        "kind": "sgd",
        "l2": 2 * float(given.get("c2", 1.0)),
        "schedule": schedule,
        "tolerance": delta / period,
    }
    return trainer, {"kind": "flat", "window": min(period + 1, 1000), "deviation": delta} if delta > 0 else {}


def _ap(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    del given
    return {"kind": "averaged-perceptron"}, {}


def _pa(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Without slack variables, no limit caps a step."""
    variant = int(given.get("pa_type", 1))
    kinds: list[dict[str, Any]] = [
        {"kind": "mira"},
        {"kind": "pa", "variant": "I"},
        {"kind": "pa", "variant": "II"},
    ]
    if variant not in range(3):
        raise ValueError("pa_type must be 0, 1 or 2.")
    cap = {} if variant == 0 else {"C": float(given.get("c", 1.0))}
    return {
        **kinds[variant],
        **cap,
        "update": "prediction",
        "total": "root" if given.get("error_sensitive", True) else "one",
        "averaged": bool(given.get("averaging", True)),
    }, {}


def _arow(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our variances start at 1: weights scaled by the initial variance have the steps of gamma / variance."""
    variance = float(given.get("variance", 1.0))
    if variance <= 0:
        raise ValueError("variance must be above 0.")
    return {"kind": "arow", "r": float(given.get("gamma", 1.0)) / variance}, {}


def _period(given: Mapping[str, Any]) -> int:
    return max(1, int(given.get("period", 10)))


_TRAINERS = {"lbfgs": _lbfgs, "l2sgd": _l2sgd, "ap": _ap, "pa": _pa, "arow": _arow}


@dataclass(frozen=True, slots=True)
class CrfInfo:
    """The contents of a model: numbers of labels and attributes, and the weights that are not zero."""

    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    transitions: dict[tuple[str, str], float]
    state_features: dict[tuple[str, str], float]

    @classmethod
    def of(cls, model: SparseModel, size_bytes: int) -> "CrfInfo":
        """Read a model."""
        names, labels, a = attribute_names(model), model.labels, model.attributes
        rows = np.repeat(np.arange(a.size), np.diff(a.starts)).tolist()
        states = {
            (names[row], labels[label]): weight
            for row, label, weight in zip(rows, a.labels.tolist(), a.weights.tolist(), strict=True)
        }
        transitions = {
            (labels[before], labels[after]): float(model.transitions[before, after])
            for before, after in np.argwhere(model.transitions).tolist()
        }
        header = {
            "size": size_bytes, "num_features": len(states) + len(transitions), "num_labels": len(labels),
            "num_attrs": len(names),
        }  # fmt: skip
        return cls(
            {name: str(value) for name, value in header.items()},
            {name: str(number) for number, name in enumerate(labels)},
            {name: str(number) for number, name in enumerate(names)},
            transitions,
            states,
        )


class CrfTagger:
    """Tags one sequence at a time, with the methods of python-crfsuite's tagger."""

    def __init__(self, tagger: Tagger, size_bytes: int) -> None:
        self._tagger = tagger
        self._size_bytes = size_bytes
        self._sequence: Sentence = []
        self._marginals: list[dict[str, float]] | None = None
        self._info: CrfInfo | None = None

    def labels(self) -> list[str]:
        """Return the labels of the model."""
        return list(self._tagger.labels)

    def set(self, xseq: Sentence) -> None:
        """Set the sequence that the other methods are about."""
        self._sequence, self._marginals = xseq, None

    def tag(self, xseq: Sentence | None = None) -> list[str]:
        """Return the best labels of a sequence, by default of the one that is set."""
        if xseq is not None:
            self.set(xseq)
        return self._tagger.tag([self._sequence])[0]

    def marginal(self, y: str, pos: int) -> float:
        """Return the probability of a label at a position of the sequence that is set."""
        if self._marginals is None:
            (self._marginals,) = marginals_of(self._tagger, [self._sequence])
        return self._marginals[pos][y]

    def probability(self, yseq: Sequence[str]) -> float:
        """Return the probability of labels for the sequence that is set."""
        if len(yseq) != len(self._sequence):
            raise ValueError(
                f"The sequence has {len(self._sequence)} tokens, but there are {len(yseq)} labels."
            )
        numbers = {label: number for number, label in enumerate(self._tagger.labels)}
        unknown = set(yseq) - numbers.keys()
        if unknown:
            raise ValueError(f"The model has no label {min(unknown)!r}. It has: {', '.join(numbers)}.")
        if not len(yseq):
            return 1.0
        labels = [numbers[label] for label in yseq]
        scores, transitions = self._scores(), self._tagger.model.transitions.astype(np.float64)
        sums = scores[0]
        for row in scores[1:]:
            sums = np.logaddexp.reduce(sums[:, None] + transitions, axis=0) + row
        own = scores[range(len(labels)), labels].sum() + transitions[labels[:-1], labels[1:]].sum()
        return exp(own - np.logaddexp.reduce(sums))

    def _scores(self) -> NDArray[np.float64]:
        """Return the score of each label at each token of the sequence that is set."""
        tagger, coded = self._tagger, self._tagger.code([self._sequence])
        scratch = tagger.scratch(coded.longest)
        score(tagger.weights, coded, 0, len(self._sequence), scratch)
        rows = scratch.scores.reshape(-1, tagger.width)[: len(self._sequence), : len(tagger.labels)]
        return rows.astype(np.float64)

    def info(self) -> CrfInfo:
        """Return the labels, attributes and weights of the model."""
        if self._info is None:
            self._info = CrfInfo.of(self._tagger.model, self._size_bytes)
        return self._info

    def dump(self, filename: str | Path | None = None) -> None:
        """Write the weights as text to a file, or to the standard output."""
        info = self.info()
        lines = [
            f"{before} --> {after}: {weight:f}\n" for (before, after), weight in info.transitions.items()
        ]
        lines += [
            f"{name} --> {label}: {weight:f}\n" for (name, label), weight in info.state_features.items()
        ]
        if filename is None:
            sys.stdout.writelines(lines)
        else:
            Path(filename).write_text("".join(lines), encoding="utf-8")


class LabelScore(NamedTuple):
    """The scores of one label on the holdout data, and how often it occurs there."""

    precision: float
    recall: float
    f1: float
    ref: int


@dataclass
class TrainingLog:
    """What happened in each iteration of training. With `verbose`, each is printed."""

    verbose: bool
    iterations: list[dict[str, Any]] = field(default_factory=list)

    @property
    def last_iteration(self) -> dict[str, Any] | None:
        return self.iterations[-1] if self.iterations else None

    def watch(self, steps: Generator[Progress, None, TrainResult]) -> TrainResult:
        """Run training to its end, and return its result."""
        while True:
            try:
                progress = next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # as the generator's type says
            if progress.pass_done:
                self._add(progress)
            elif progress.message and self.verbose:
                sys.stdout.write(f"{progress.message}\n")

    def score(self, gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> None:
        """Add the scores of each label on the holdout data to the last iteration."""
        pairs = [pair for rows in zip(gold, predicted, strict=True) for pair in zip(*rows, strict=True)]
        scores = {}
        for label in sorted({label for label, _ in pairs}):
            right = sum(a == b == label for a, b in pairs)
            found, ref = sum(b == label for _, b in pairs), sum(a == label for a, _ in pairs)
            precision, recall = right / found if found else 0.0, right / ref
            f1 = 2 * precision * recall / (precision + recall) if right else 0.0
            scores[label] = LabelScore(precision, recall, f1, ref)
        if self.iterations:
            self.iterations[-1]["scores"] = scores
        if self.verbose:
            width = max(map(len, scores), default=0)
            sys.stdout.write(f"{'label':{width}}  precision  recall     F1  support\n")
            for label, s in scores.items():
                row = f"{label:{width}}  {s.precision:9.3f}  {s.recall:6.3f}  {s.f1:5.3f}  {s.ref:7}\n"
                sys.stdout.write(row)

    def _add(self, progress: Progress) -> None:
        entry: dict[str, Any] = {
            "num": progress.pass_number,
            "loss": progress.objective,
            "active_features": progress.active_features,
            "time": progress.seconds - sum(each["time"] for each in self.iterations),
        }
        line = (
            f"Iter {entry['num']:<4} time={entry['time']:<6.2f} loss={entry['loss']:<10.2f} "
            f"active={entry['active_features']}"
        )
        if (dev := progress.dev) is not None:
            entry |= {
                "item_correct": dev["tokens_correct"], "item_total": dev["tokens"],
                "item_accuracy_float": dev["tokens_correct"] / max(1, dev["tokens"]),
                "instance_correct": dev["sentences_correct"], "instance_total": dev["sentences"],
                "instance_accuracy_float": dev["sentences_correct"] / max(1, dev["sentences"]),
            }  # fmt: skip
            line += (
                f" Acc(item/seq)={entry['item_accuracy_float']:.3f} {entry['instance_accuracy_float']:.3f}"
            )
        self.iterations.append(entry)
        if self.verbose:
            sys.stdout.write(f"{line}\n")
