"""The model file: a JSON header and aligned arrays, nothing that runs.

    8 bytes  magic, with the version of the format
    8 bytes  length of the header, little-endian
    header   JSON: labels, features, and of each array its type, shape and place; sha256 of all that follows
    arrays   each at a multiple of 64 bytes, little-endian

The same model gives the same bytes. A file is trusted for nothing: the checksum, every size and every index that a
kernel would follow are checked when it is opened.
"""

import hashlib
import json
import mmap
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from core.corpus.vocabulary import Vocabulary
from core.errors import Invalid
from core.features.columns import Coder, DerivedColumn
from core.features.derived import Derived
from core.features.index import Table
from core.features.spec import FeatureSpec
from core.jit import readonly
from core.model.model import Attributes, Model

MAGIC = b"TAGSMTH\x01"
_ALIGNMENT = 64
_MAX_HEADER = 64 << 20
_VOCABULARY = {"text": np.uint8, "offsets": np.int64, "table": np.int32}
_ATTRIBUTES = {
    "starts": np.int64,
    "labels": np.int16,
    "weights": np.float32,
    "templates": np.int16,
    "value_starts": np.int64,
    "values": np.int32,
}


class CorruptModel(Invalid):
    """The file is not a sound model."""

    default_code = "corrupt_model"


def save(model: Model, path: Path) -> str:
    """Write the model; returns the sha256 of the file."""
    arrays = _arrays(model)
    places, end = {}, 0
    for name, array in arrays.items():
        places[name] = {"dtype": array.dtype.str, "shape": list(array.shape), "at": end}
        end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    payload = hashlib.sha256()
    for piece in _pieces(arrays):
        payload.update(piece)
    header = json.dumps(
        {**_description(model), "arrays": places, "sha256": payload.hexdigest()},
        sort_keys=True,
        ensure_ascii=False,
    ).encode("utf-8", "surrogatepass")
    header += b" " * (-(16 + len(header)) % _ALIGNMENT)
    whole = hashlib.sha256()
    with path.open("wb") as out:
        for piece in (MAGIC + len(header).to_bytes(8, "little") + header, *_pieces(arrays)):
            out.write(piece)
            whole.update(piece)
    return whole.hexdigest()


def load(path: Path) -> Model:
    """Map a model file read-only, or raise CorruptModel."""
    try:
        with path.open("rb") as source:
            region = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise CorruptModel(f"The model file cannot be read: {error.__class__.__name__}") from None
    raw = np.frombuffer(region, np.uint8)
    try:
        return _load(raw)
    except CorruptModel:
        raise
    except (Invalid, ValidationError, KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
        raise CorruptModel(f"The model file is damaged ({error.__class__.__name__})") from None


def _load(raw: NDArray[np.uint8]) -> Model:
    if raw[:8].tobytes() != MAGIC:
        raise CorruptModel("The file is not a Tagsmith model, or of another version of the format")
    length = int.from_bytes(raw[8:16].tobytes(), "little")
    if length > min(_MAX_HEADER, len(raw) - 16):
        raise CorruptModel("The model file is cut short")
    header = json.loads(raw[16 : 16 + length].tobytes().decode("utf-8", "surrogatepass"))
    payload = raw[16 + length :]
    if hashlib.sha256(payload.data).hexdigest() != header["sha256"]:
        raise CorruptModel("The model file's checksum does not match its content")
    model = _model(header, payload)
    _check(model)
    return model


def _description(model: Model) -> dict[str, Any]:
    features = model.features
    return {
        "labels": list(model.labels),
        "columns": features.columns,
        "templates": "\n".join(str(template) for template in features.templates),
        "derived": [
            [name, spec.model_dump(mode="json", exclude_none=True)] for name, spec in features.derived
        ],
        "cutoff": features.cutoff,
    }


def _arrays(model: Model) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for i, vocabulary in enumerate(model.coder.vocabularies):
        for part in _VOCABULARY:
            arrays[f"vocabulary.{i}.{part}"] = getattr(vocabulary, part)
    for i, derived in enumerate(model.coder.derived):
        arrays[f"derived.{i}.of_base"] = derived.of_base
    arrays["table.keys"], arrays["table.rows"] = model.table.keys, model.table.rows
    for field in fields(Attributes):
        arrays[f"attributes.{field.name}"] = getattr(model.attributes, field.name)
    arrays["transitions"] = model.transitions
    return arrays


def _pieces(arrays: dict[str, NDArray[Any]]) -> Iterator[bytes | memoryview]:
    for array in arrays.values():
        yield np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
        yield b"\x00" * (-array.nbytes % _ALIGNMENT)


def _model(header: dict[str, Any], payload: NDArray[np.uint8]) -> Model:
    def array(name: str, dtype: Any, dimensions: int = 1) -> NDArray[Any]:
        place = header["arrays"][name]
        shape, at = [int(n) for n in place["shape"]], int(place["at"])
        size = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
        expected = np.dtype(dtype).newbyteorder("<").str
        if place["dtype"] != expected or len(shape) != dimensions or min(shape, default=0) < 0:
            raise CorruptModel(f"The array {name} has the wrong type")
        if at < 0 or at % _ALIGNMENT or at + size > len(payload):
            raise CorruptModel(f"The array {name} lies outside the file")
        return readonly(payload[at : at + size].view(np.dtype(dtype)).reshape(shape), dtype)

    derived = {name: Derived.model_validate(spec) for name, spec in header["derived"]}
    columns = int(header["columns"])
    spec = FeatureSpec(templates=header["templates"], derived=derived, cutoff=header["cutoff"])
    features = spec.resolve(columns)
    count = columns + len(features.derived)
    vocabularies = [
        Vocabulary(**{part: array(f"vocabulary.{i}.{part}", dtype) for part, dtype in _VOCABULARY.items()})
        for i in range(count)
    ]
    return Model(
        labels=tuple(str(label) for label in header["labels"]),
        features=features,
        coder=Coder(
            tuple(vocabularies[:columns]),
            tuple(
                DerivedColumn(name, spec, vocabularies[columns + i], array(f"derived.{i}.of_base", np.int32))
                for i, (name, spec) in enumerate(features.derived)
            ),
        ),
        table=Table(array("table.keys", np.uint64), array("table.rows", np.int32)),
        attributes=Attributes(
            **{name: array(f"attributes.{name}", dtype) for name, dtype in _ATTRIBUTES.items()}
        ),
        transitions=array("transitions", np.float32, dimensions=2),
    )


def _check(model: Model) -> None:
    """Every index a kernel follows must lead somewhere, and every search must end."""
    a, labels, features = model.attributes, len(model.labels), model.features
    arity = np.diff(model.slots.starts)
    sound = (
        labels > 0
        and len(set(model.labels)) == labels
        and model.features.columns == len(model.coder.base)
        and model.transitions.shape == (labels, labels)
        and bool(np.isfinite(model.transitions).all())
        and _rises(a.starts, a.size, len(a.labels))
        and len(a.labels) == len(a.weights)
        and _within(a.labels, labels)
        and bool(np.isfinite(a.weights).all())
        and _within(a.templates, len(features.slots))
        and _rises(a.value_starts, a.size, len(a.values))
        and bool((np.diff(a.value_starts) == arity[a.templates]).all())
        and _table_is_sound(model.table, a.size)
        and all(
            len(d.of_base) == len(model.coder.base[d.spec.of])
            and (
                len(d.of_base) == 0 or -1 <= int(d.of_base.min()) <= int(d.of_base.max()) < len(d.vocabulary)
            )
            for d in model.coder.derived
        )
    )
    if not sound:
        raise CorruptModel("The model file's arrays contradict each other")


def _rises(starts: NDArray[np.int64], count: int, end: int) -> bool:
    return (
        len(starts) == count + 1
        and starts[0] == 0
        and starts[-1] == end
        and bool((np.diff(starts) >= 0).all())
    )


def _within(ids: NDArray[Any], count: int) -> bool:
    return len(ids) == 0 or (int(ids.min()) >= 0 and int(ids.max()) < count)


def _table_is_sound(table: Table, entries: int) -> bool:
    capacity = len(table.keys)
    filled = table.keys != 0
    return (
        capacity == len(table.rows)
        and capacity >= 2
        and capacity & (capacity - 1) == 0
        and 2 * int(np.count_nonzero(filled)) <= capacity
        and _within(table.rows[filled], entries)
    )
