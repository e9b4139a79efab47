"""CRF++'s text models, which `crf_learn -t` writes beside the binary ones.

Five parts with an empty line between them: figures such as `maxid: 1234`; labels; templates; the features, each with
the place of its first weight (`22 U00:Rockwell`); and the weights, one a line. A feature has a weight for every label,
or, when it begins with B, for every pair of labels, the one before first.
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.features.template import parse_crfpp
from core.model.file import CorruptModel
from core.model.foreign.templates import Weighed, checked_labels, decoded, model_of
from core.model.model import Model
from core.model.untrusted import MAX_LABELS

MAGIC = b"version:"
_FIGURE = re.compile(r"^([a-z-]+): +([0-9.e+-]+)$", re.MULTILINE)
_FEATURE = re.compile(r"(\d{1,18}) (.+)")


def read(path: Path) -> Model:
    """The model of a file, or Invalid."""
    parts = decoded(path.read_bytes()).replace("\r\n", "\n").split("\n\n", 4)
    if len(parts) < 5:
        raise CorruptModel(
            "The file lacks one of its five parts: figures, labels, templates, features, weights"
        )
    head, labels, templates, features, weights = parts
    figures = dict(_FIGURE.findall(head))
    lines = templates.split("\n")
    if len(set(lines)) < len(lines):
        # There every template counts by itself; here the same one twice is one.
        raise CorruptModel("A template of the file is there twice")
    texts, starts = _features(features)
    factor, values = _number(figures, "cost-factor"), _weights(weights, int(_number(figures, "maxid")))
    places = np.flatnonzero(values)
    return model_of(
        checked_labels(labels.split("\n"), MAX_LABELS),
        parse_crfpp(templates),
        Weighed(
            texts,
            starts,
            np.array([text.startswith("B") for text in texts], np.bool_),
            places,
            values[places] * factor,
        ),
    )


def _number(figures: dict[str, str], name: str) -> float:
    try:
        return float(figures[name])
    except (KeyError, ValueError):
        raise CorruptModel(f"The head of the file does not say its {name}") from None


def _features(part: str) -> tuple[list[str], NDArray[np.int64]]:
    texts, starts = [], []
    for line in part.split("\n") if part else ():
        found = _FEATURE.fullmatch(line)
        if found is None:
            raise CorruptModel(f"{line[:80]!r} is not a feature: the place of its weights, and its text")
        starts.append(int(found[1]))
        texts.append(found[2])
    return texts, np.array(starts, np.int64)


def _weights(part: str, count: int) -> NDArray[np.float64]:
    try:
        values = np.fromstring(part, np.float64, sep="\n")
    except (ValueError, DeprecationWarning):
        values = np.empty(0)
    if len(values) != count:
        raise CorruptModel(f"The file should have {count} weights, each a number by itself")
    return values
