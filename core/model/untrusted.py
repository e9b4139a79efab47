"""Opening uploaded model files. Besides the checks of `file.load`, labels and names must be valid text."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import flat_file
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.model import file
from tagsmith.core.model.file import CorruptModel
from tagsmith.core.model.model import SparseModel

#: Far above any trained weight. Products with the largest attribute value and their sums stay finite.
MAX_WEIGHT = 1e20
#: The size of the transitions and the work per token grow with the square of the number of labels.
MAX_LABELS = 4096


def opened(path: Path) -> SparseModel:
    """Map a model file, or raise CorruptModel. All strings of the model are valid text."""
    _check_header(path)
    model = file.load(path)
    check(model)
    return model


def check(model: SparseModel) -> None:
    """Raise CorruptModel for content that is safe for kernels but not for users."""
    if len(model.labels) > MAX_LABELS:
        raise CorruptModel(f"The model has {len(model.labels)} labels; the maximum is {MAX_LABELS}.")
    every = [model.attributes.weights, model.transitions.reshape(-1)]
    if model.edges is not None:
        every.append(model.edges.attributes.weights)
    if not all(_small(weights) for weights in every):
        raise CorruptModel(f"A weight of the model exceeds {MAX_WEIGHT:g}.")
    vocabularies = [*model.coder.vocabularies, *(bag.vocabulary for bag in model.bags)]
    if not all(map(is_text, vocabularies)):
        raise CorruptModel("A vocabulary of the model is not UTF-8 text.")


def is_text(vocabulary: Vocabulary) -> bool:
    """Whether every string is UTF-8: the whole text is, and no string starts within a character."""
    text, starts = vocabulary.text, vocabulary.offsets[:-1]
    try:
        text.tobytes().decode()
    except UnicodeDecodeError:
        return False
    firsts = text[starts[starts < len(text)]]
    return not bool(((firsts & 0xC0) == 0x80).any())


def _check_header(path: Path) -> None:
    """Check that the header is valid text: names and labels are returned in JSON and stored in PostgreSQL."""
    try:
        text = json.dumps(flat_file.FlatFile.open(path, file.MAGIC).header, ensure_ascii=False)
        text.encode()
    except flat_file.CorruptFile as error:
        raise CorruptModel(error.message) from None
    except (ValueError, RecursionError):
        raise CorruptModel("The header of the model file is not UTF-8 text.") from None


def _small(weights: NDArray[np.float32]) -> bool:
    return bool((np.abs(weights) <= MAX_WEIGHT).all())
