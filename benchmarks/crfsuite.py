"""python-crfsuite as its users run it: features are expanded in Python and passed as lists of strings."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pycrfsuite

from tagsmith.core.features.presets import PRESETS
from tagsmith.core.features.templates.crfpp import parse_crfpp
from tagsmith.core.features.templates.template import Template

Row = list[str]
Sentence = list[Row]


def sentences(raw: bytes) -> list[Sentence]:
    """Rows of columns, split in Python."""
    out: list[Sentence] = [[]]
    for line in raw.decode().split("\n"):
        row = line.split()
        if row:
            out[-1].append(row)
        elif out[-1]:
            out.append([])
    return [sentence for sentence in out if sentence]


def templates(columns: int = 2) -> list[Template]:
    """CRF++'s chunking templates; crfsuite has label bigrams of its own."""
    text, _ = PRESETS["chunking"](columns)
    return [template for template in parse_crfpp(text) if template.kind == "U"]


def expand(sentence: Sequence[Sequence[str]], parsed: list[Template]) -> list[list[str]]:
    """The features of each token as strings."""
    n = len(sentence)
    out = []
    for t in range(n):
        features = []
        for template in parsed:
            values = []
            for slot in template.slots:
                position = t + slot.row
                if position < 0:
                    values.append(f"_B{position}")
                elif position >= n:
                    values.append(f"_B+{position - n + 1}")
                else:
                    values.append(sentence[position][slot.column])
            features.append(template.literals[0] + "/".join(values))
        out.append(features)
    return out


class Timed(pycrfsuite.Trainer):
    """A trainer that stores the report of each iteration."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, verbose=False, **kwargs)
        self.log: list[str] = []

    def message(self, message: str) -> None:
        self.log.append(message)

    def iteration_seconds(self) -> list[float]:
        """Seconds of each pass, as crfsuite measured them."""
        return [
            float(s) for s in re.findall(r"Seconds required for this iteration: ([0-9.]+)", "".join(self.log))
        ]

    def losses(self) -> list[float]:
        return [float(s) for s in re.findall(r"Loss: ([0-9.e+-]+)", "".join(self.log))]


def trained(
    features: list[list[list[str]]],
    labels: list[list[str]],
    model: Path,
    algorithm: str,
    params: dict[str, object],
) -> Timed:
    """Pass all data and train."""
    trainer = Timed()
    for xseq, yseq in zip(features, labels, strict=True):
        trainer.append(xseq, yseq)
    trainer.select(algorithm)
    trainer.set_params(params)
    trainer.train(str(model))
    return trainer


class Clocked(Timed):
    """A trainer whose iterations are timed by the wall clock. crfsuite itself reports processor time."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[float] = []

    def message(self, message: str) -> None:
        super().message(message)
        if "Seconds required for this iteration" in message:
            self.ends.append(time.perf_counter())


class Peer:
    """python-crfsuite with the data passed once; every run starts from zero."""

    def __init__(self, raw: bytes, model: Path) -> None:
        parsed = templates()
        self._trainer = Clocked()
        for sentence in sentences(raw):
            self._trainer.append(expand(sentence, parsed), [row[-1] for row in sentence])
        self.model = model

    def run(self, algorithm: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """The curve of a run; seconds are those of the iterations, without earlier trials of a rate."""
        self._trainer.log.clear()
        self._trainer.ends.clear()
        self._trainer.select(algorithm)
        self._trainer.set_params(params)
        self._trainer.train(str(self.model))
        log = "".join(self._trainer.log)
        active = [int(n) for n in re.findall(r"Active features: (\d+)", log)]
        processor, losses = self._trainer.iteration_seconds(), self._trainer.losses()
        # There is no earlier end to measure from: use the time that crfsuite reports.
        ends = self._trainer.ends
        began = ends[0] - processor[0]
        return [
            {
                "pass": i + 1,
                "seconds": end - began,
                "took": end - (ends[i - 1] if i else began),
                "processor": processor[i],
                "objective": losses[i],
                "active_features": active[i] if i < len(active) else None,
            }
            for i, end in enumerate(ends)
        ]
