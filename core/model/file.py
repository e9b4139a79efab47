"""The model file: a flat file with all that tagging needs.

The same model gives the same bytes. A file is trusted for nothing: the checksum, every size and every index that a
kernel would follow are checked when it is opened.
"""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from core import flat_file
from core.corpus.bag import Cells
from core.corpus.vocabulary import Vocabulary
from core.errors import Invalid
from core.features.columns import Coder, DerivedColumn
from core.features.index import Slots, Table, columns_of_values
from core.features.settled import Several, restored
from core.features.several import NO_CELLS, Family
from core.model import matchers
from core.model.model import Attributes, Model, RichEdges

MAGIC = b"TAGSMTH\x02"
_ATTRIBUTES = {
    "starts": np.int64,
    "labels": np.int16,
    "weights": np.float32,
    "templates": np.int16,
    "value_starts": np.int64,
    "values": np.int32,
}
_EDGES = {**_ATTRIBUTES, "labels": np.int32}
#: What a header of any content can make the code below it raise.
_WRONG = (
    ValidationError,
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    AssertionError,
)


class CorruptModel(Invalid):
    """The file is not a sound model."""

    default_code = "corrupt_model"


def save(model: Model, path: Path) -> str:
    """Write the model; returns the sha256 of the file."""
    return flat_file.save(path, MAGIC, _description(model), _arrays(model))


def load(path: Path) -> Model:
    """Map a model file read-only, or raise CorruptModel."""
    try:
        model = _model(flat_file.FlatFile.open(path, MAGIC))
        _check(model)
    except CorruptModel:
        raise
    except Invalid as error:
        raise CorruptModel(error.message) from None
    except _WRONG as error:
        raise CorruptModel(f"The model file is damaged ({error.__class__.__name__})") from None
    return model


def _description(model: Model) -> dict[str, Any]:
    return {
        "labels": list(model.labels),
        "features": model.features.record(),
        "matchers": matchers.description(model.coder.matched),
    }


def _arrays(model: Model) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for i, vocabulary in enumerate(model.coder.vocabularies):
        for part in matchers.VOCABULARY:
            arrays[f"vocabulary.{i}.{part}"] = getattr(vocabulary, part)
    for i, derived in enumerate(model.coder.derived):
        arrays[f"derived.{i}.of_base"] = derived.of_base
    arrays |= matchers.arrays(model.coder.matched)
    arrays["table.keys"], arrays["table.rows"] = model.table.keys, model.table.rows
    for field in fields(Attributes):
        arrays[f"attributes.{field.name}"] = getattr(model.attributes, field.name)
    arrays["transitions"] = model.transitions
    for i, family in enumerate(model.families):
        for part in matchers.VOCABULARY:
            arrays[f"family.{i}.{part}"] = getattr(family.vocabulary, part)
        arrays[f"family.{i}.attributes"] = family.attributes
        arrays[f"family.{i}.of_base.starts"] = family.of_base.starts
        arrays[f"family.{i}.of_base.ids"] = family.of_base.ids
    if model.edges is not None:
        arrays["edges.keys"], arrays["edges.rows"] = model.edges.table.keys, model.edges.table.rows
        for field in fields(Attributes):
            arrays[f"edges.{field.name}"] = getattr(model.edges.attributes, field.name)
    return arrays


def _model(source: flat_file.FlatFile) -> Model:
    header, array = source.header, source.array
    features = restored(header["features"])
    columns = features.columns
    first = columns + len(features.derived)
    count = first + len(features.matched)
    vocabularies = [
        Vocabulary(
            **{part: array(f"vocabulary.{i}.{part}", dtype) for part, dtype in matchers.VOCABULARY.items()}
        )
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
            matchers.columns(source, features.matched, vocabularies[first:], vocabularies[:columns]),
        ),
        table=Table(array("table.keys", np.uint64), array("table.rows", np.int32)),
        attributes=Attributes(
            **{name: array(f"attributes.{name}", dtype) for name, dtype in _ATTRIBUTES.items()}
        ),
        transitions=array("transitions", np.float32, dimensions=2),
        edges=RichEdges(
            Table(array("edges.keys", np.uint64), array("edges.rows", np.int32)),
            Attributes(**{name: array(f"edges.{name}", dtype) for name, dtype in _EDGES.items()}),
        )
        if features.rich
        else None,
        families=tuple(_family(source, i, spec) for i, spec in enumerate(features.several)),
    )


def _family(source: flat_file.FlatFile, number: int, spec: Several) -> Family:
    def array(name: str, dtype: Any) -> NDArray[Any]:
        return source.array(f"family.{number}.{name}", dtype)

    return Family(
        spec,
        Vocabulary(**{part: array(part, dtype) for part, dtype in matchers.VOCABULARY.items()}),
        array("attributes", np.int32),
        Cells(array("of_base.starts", np.int64), array("of_base.ids", np.int32), NO_CELLS.values),
    )


def _check(model: Model) -> None:
    """Every index a kernel follows must lead somewhere, and every search must end."""
    labels = len(model.labels)
    sound = (
        labels > 0
        and len(set(model.labels)) == labels
        and model.features.columns == len(model.coder.base)
        and model.transitions.shape == (labels, labels)
        and bool(np.isfinite(model.transitions).all())
        and _attributes_are_sound(model.attributes, model.slots, model.table, labels)
        and (
            model.edges is None
            or _attributes_are_sound(
                model.edges.attributes, model.edge_slots, model.edges.table, labels * labels
            )
        )
        and _values_are_known(model.attributes, model.slots, model)
        and (model.edges is None or _values_are_known(model.edges.attributes, model.edge_slots, model))
        and all(_family_is_sound(family, model) for family in model.families)
        and _families_share_nothing(model)
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


def _attributes_are_sound(a: Attributes, slots: Slots, table: Table, labels: int) -> bool:
    return (
        _rises(a.starts, a.size, len(a.labels))
        and len(a.labels) == len(a.weights)
        and matchers.within(a.labels, 0, labels)
        and bool(np.isfinite(a.weights).all())
        and matchers.within(a.templates, 0, len(slots.seeds))
        and _rises(a.value_starts, a.singles, len(a.values))
        and bool((np.diff(a.value_starts) == np.diff(slots.starts)[a.templates]).all())
        and matchers.is_sound(table, a.singles)
    )


def _values_are_known(a: Attributes, slots: Slots, model: Model) -> bool:
    """Whether every value of an attribute has a name."""
    sizes = np.array([len(vocabulary) for vocabulary in model.coder.vocabularies], np.int64)
    columns = columns_of_values(slots, a.templates, a.value_starts)
    return bool((a.values < sizes[columns]).all())


def _family_is_sound(family: Family, model: Model) -> bool:
    a, cells, chain = model.attributes, family.of_base, family.spec.chain
    values = 0 if chain is None else len(model.coder.base[chain.of])
    return (
        len(family.attributes) == len(family.vocabulary)
        and matchers.within(family.attributes - a.singles, 0, a.size - a.singles)
        and _rises(cells.starts, values, len(cells.ids))
        and matchers.within(cells.ids, 0, len(family.vocabulary))
    )


def _families_share_nothing(model: Model) -> bool:
    """Whether every attribute behind the singles is of one entry of one family, which names it."""
    singles, size = model.attributes.singles, model.attributes.size
    every = [family.attributes for family in model.families]
    found = np.concatenate([np.empty(0, np.int32), *every])
    return len(found) == size - singles and len(np.unique(found)) == len(found)


def _rises(starts: NDArray[np.int64], count: int, end: int) -> bool:
    return (
        len(starts) == count + 1
        and starts[0] == 0
        and starts[-1] == end
        and bool((np.diff(starts) >= 0).all())
    )
