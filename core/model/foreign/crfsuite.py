"""Binary model files of CRFsuite.

A header of twelve words has the offsets of the sections. `FEAT` has one record per weight: its kind (0: attribute and
label, 1: two labels), source, target label, and the weight as a double. Labels and attributes are each a `CQDB`, a
constant hash table. We read only its list of records by number: number, size, and NUL-terminated text. All values are
little-endian, and offsets have 32 bits.
"""

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.hash_table import Table
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.columns.bags import NO_CELLS, BagIndex
from tagsmith.core.features.columns.coder import Coder
from tagsmith.core.features.resolve import resolve_features
from tagsmith.core.features.resolved import BAG
from tagsmith.core.features.templates.crfpp import parse_crfpp
from tagsmith.core.model.file import CorruptModel
from tagsmith.core.model.foreign.weights import rows_of, transitions_of
from tagsmith.core.model.model import ModelAttributes, SparseModel
from tagsmith.core.model.untrusted import MAX_LABELS, is_text

MAGIC = b"lCRF"
_KIND, _VERSION = b"FOMC", 100
_HEADER = struct.Struct("<4sI4sIIIIIIIII")
_QUARKS = struct.Struct("<4sIIIII")
_ORDER = 0x62445371
_FEATURES = struct.Struct("<4sII")
_RECORD = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
_OF_ATTRIBUTE, _OF_LABEL = 0, 1

_Bytes = NDArray[np.uint8]


def read(path: Path) -> SparseModel:
    """Read a model, or raise CorruptModel. Its attributes become named attributes of tokens."""
    raw = np.fromfile(path, np.uint8)
    magic, size, kind, version, _, label_count, attribute_count, features_at, labels_at, attributes_at, *_ = (
        _unpacked(_HEADER, raw, 0)
    )
    if magic != MAGIC or kind != _KIND or version != _VERSION or size > len(raw):
        raise CorruptModel("The file is not a first-order CRFsuite model, or is truncated.")
    if not 0 < label_count <= MAX_LABELS:
        raise CorruptModel(f"The file has {label_count} labels; it must have 1 to {MAX_LABELS}.")
    labels = _strings(raw, labels_at, label_count)
    vocabulary = _strings(raw, attributes_at, attribute_count)
    features = _features(raw, features_at)
    of_label, of_attribute = features["kind"] == _OF_LABEL, features["kind"] == _OF_ATTRIBUTE
    sources = np.where(of_label, label_count, attribute_count)
    sound = (
        bool((of_label | of_attribute).all())
        and bool((features["source"] < sources).all())
        and bool((features["target"] < label_count).all())
    )
    if not sound:
        raise CorruptModel("A weight of the file refers to a missing label or attribute.")
    rows = rows_of(*_columns(features[of_attribute]), attribute_count, label_count)
    none = np.empty(0, np.int32)
    return SparseModel(
        labels=tuple(labels.strings()),
        features=resolve_features(parse_crfpp("B"), {}, [], 1),
        coder=Coder((), ()),
        table=Table.of(np.empty(0, np.uint64)),
        attributes=ModelAttributes(
            rows.starts,
            rows.places.astype(np.int16),
            rows.weights,
            none.astype(np.int16),
            np.zeros(1, np.int64),
            none,
        ),
        transitions=transitions_of(*_columns(features[of_label]), label_count),
        bags=(BagIndex(BAG, vocabulary, np.arange(attribute_count, dtype=np.int32), NO_CELLS),),
    )


def _unpacked(layout: struct.Struct, raw: _Bytes, at: int) -> tuple[Any, ...]:
    if at + layout.size > len(raw):
        raise CorruptModel("The file is truncated.")
    return layout.unpack(raw[at : at + layout.size].tobytes())


def _columns(features: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    return features["source"].astype(np.int64), features["target"].astype(np.int64), features["weight"]


def _features(raw: _Bytes, at: int) -> NDArray[np.void]:
    magic, _, count = _unpacked(_FEATURES, raw, at)
    first = at + _FEATURES.size
    if magic != b"FEAT" or first + count * _RECORD.itemsize > len(raw):
        raise CorruptModel("The weights of the file are truncated.")
    return raw[first : first + count * _RECORD.itemsize].view(_RECORD)


def _strings(raw: _Bytes, at: int, count: int) -> Vocabulary:
    """Read the strings of a constant hash table, by number."""
    magic, size, _, order, _, listed_at = _unpacked(_QUARKS, raw, at)
    if magic != b"CQDB" or order != _ORDER or at + size > len(raw):
        raise CorruptModel("A string table of the file is damaged.")
    table = raw[at : at + size]
    if listed_at + 4 * count > size:
        raise CorruptModel("A string table of the file is truncated.")
    places = table[listed_at : listed_at + 4 * count].view("<u4").astype(np.int64)
    if count and int(places.max()) + 8 > size:
        raise CorruptModel("A string lies outside the file.")
    # Byte by byte: an index of eight places per string would take 64 bytes of memory for each of them.
    records = np.empty((count, 8), np.uint8)
    for byte in range(8):
        records[:, byte] = table[places + byte]
    heads = records.view("<u4").astype(np.int64)
    starts, stops = places + 8, places + 7 + heads[:, 1]  # after number and size, without the NUL
    if (heads[:, 0] != np.arange(count)).any() or (stops < starts).any() or (stops >= size).any():
        raise CorruptModel("A string lies outside the file.")
    try:
        vocabulary = Vocabulary.from_spans(table, starts, stops)
    except Invalid:
        raise
    except ValueError as error:
        raise CorruptModel(f"A string table of the file is damaged: {error}.") from None
    if not is_text(vocabulary):
        raise CorruptModel("A string of the file is not UTF-8 text.")
    return vocabulary
