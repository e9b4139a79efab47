"""Text models of CRF++, written by `crf_learn -t`.

Five sections, separated by empty lines: header fields such as `maxid: 1234`; labels; templates; features, each with the
index of its first weight (`22 U00:Rockwell`); and weights, one per line. A feature has one weight per label or, if it
begins with B, one per label pair, with the first label as the slower index.
"""

import math
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.features.templates.crfpp import parse_crfpp
from tagsmith.core.model.file import CorruptModel
from tagsmith.core.model.foreign.templates import TextWeights, checked_labels, decoded, model_of
from tagsmith.core.model.model import SparseModel
from tagsmith.core.model.untrusted import MAX_LABELS

MAGIC = b"version:"
_FIGURE = re.compile(r"^([a-z-]+): +([0-9.e+-]+)$", re.MULTILINE)
_FEATURE = re.compile(r"(\d{1,18}) (.+)")


def read(path: Path) -> SparseModel:
    """Read a model, or raise Invalid."""
    parts = decoded(path.read_bytes()).replace("\r\n", "\n").split("\n\n", 4)
    if len(parts) < 5:
        raise CorruptModel("The file must have five sections: header, labels, templates, features, weights.")
    head, labels, templates, features, weights = parts
    figures = dict(_FIGURE.findall(head))
    lines = templates.split("\n")
    if len(set(lines)) < len(lines):
        # CRF++ has separate weights for each copy of a template; we treat equal templates as one.
        raise CorruptModel("The file contains a template twice.")
    texts, starts = _features(features)
    factor, values = _number(figures, "cost-factor"), _weights(weights, int(_number(figures, "maxid")))
    places = np.flatnonzero(values)
    return model_of(
        checked_labels(labels.split("\n"), MAX_LABELS),
        parse_crfpp(templates),
        TextWeights(
            texts,
            starts,
            np.array([text.startswith("B") for text in texts], np.bool_),
            places,
            values[places] * factor,
        ),
    )


def _number(figures: dict[str, str], name: str) -> float:
    try:
        number = float(figures[name])
    except (KeyError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise CorruptModel(f"The header of the file has no valid {name}.")
    return number


def _features(part: str) -> tuple[list[str], NDArray[np.int64]]:
    texts, starts = [], []
    for line in part.split("\n") if part else ():
        found = _FEATURE.fullmatch(line)
        if found is None:
            raise CorruptModel(
                f"The line {line[:80]!r} is not a feature, which is the index of its first weight and its text."
            )
        starts.append(int(found[1]))
        texts.append(found[2])
    return texts, np.array(starts, np.int64)


def _weights(part: str, count: int) -> NDArray[np.float64]:
    try:
        values = np.fromstring(part, np.float64, sep="\n")
    except (ValueError, DeprecationWarning):
        values = np.empty(0)
    if len(values) != count:
        raise CorruptModel(f"The file must have {count} weights, one number per line.")
    return values
