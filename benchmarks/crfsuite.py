"""python-crfsuite as its users run it: features expanded in Python, lists of strings handed over."""

import re
from collections.abc import Sequence
from pathlib import Path

import pycrfsuite

from core.features.presets import PRESETS
from core.features.template import Template, parse_crfpp

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
    """A trainer that keeps what each iteration reported."""

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
    """Hand everything over and train."""
    trainer = Timed()
    for xseq, yseq in zip(features, labels, strict=True):
        trainer.append(xseq, yseq)
    trainer.select(algorithm)
    trainer.set_params(params)
    trainer.train(str(model))
    return trainer
