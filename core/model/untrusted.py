"""Opening model files that somebody sent: what `file.load` checks for the kernels, and what people will see besides."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core import flat_file
from core.corpus.vocabulary import Vocabulary
from core.model import file
from core.model.file import CorruptModel
from core.model.model import Model
from core.model.tagger import Tagger

#: Training is far from such weights. Times the largest value of an attribute and summed they stay finite.
MAX_WEIGHT = 1e20
#: The transitions are a square of labels, and so is the work of every token.
MAX_LABELS = 4096
#: Values of the probe sentence: known to no model, and of every length that derived columns look at.
_PROBE = "-"


def opened(path: Path) -> Model:
    """Map a model file, or raise CorruptModel. It has tagged once, and all its strings can be shown."""
    _check_header(path)
    model = file.load(path)
    check(model)
    Tagger(model).tag([[[_PROBE] * model.features.columns]])
    return model


def check(model: Model) -> None:
    """Raise CorruptModel for what kernels would bear but users would not."""
    if len(model.labels) > MAX_LABELS:
        raise CorruptModel(f"The model has {len(model.labels)} labels; at most {MAX_LABELS} are possible")
    every = [model.attributes.weights, model.transitions.reshape(-1)]
    if model.edges is not None:
        every.append(model.edges.attributes.weights)
    if not all(_small(weights) for weights in every):
        raise CorruptModel(f"A weight of the model is larger than {MAX_WEIGHT:g}")
    vocabularies = [*model.coder.vocabularies, *(family.vocabulary for family in model.families)]
    if not all(map(_is_text, vocabularies)):
        raise CorruptModel("A vocabulary of the model is not UTF-8 text")


def _check_header(path: Path) -> None:
    """Names and labels come back in JSON, which has no lone surrogates, and from PostgreSQL, which has no NUL."""
    try:
        text = json.dumps(flat_file.FlatFile.open(path, file.MAGIC).header, ensure_ascii=False)
        text.encode()
    except flat_file.CorruptFile as error:
        raise CorruptModel(error.message) from None
    except (ValueError, RecursionError):
        raise CorruptModel("The header of the model file is not UTF-8 text") from None


def _small(weights: NDArray[np.float32]) -> bool:
    return bool((np.abs(weights) <= MAX_WEIGHT).all())


def _is_text(vocabulary: Vocabulary) -> bool:
    """Whether every string by itself is UTF-8: the whole is, and none starts within a character."""
    text, starts = vocabulary.text, vocabulary.offsets[:-1]
    try:
        text.tobytes().decode()
    except UnicodeDecodeError:
        return False
    firsts = text[starts[starts < len(text)]]
    return not bool(((firsts & 0xC0) == 0x80).any())
