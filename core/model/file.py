"""The model file: a flat file with everything that tagging needs.

Equal models give equal bytes. Model files are untrusted input: opening one checks the checksum, every size and every
index that a kernel follows.
"""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from tagsmith.core.base import flat_file
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.hash_table import Table
from tagsmith.core.corpus.bag import Cells
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.arc_values import arc_values_are_known
from tagsmith.core.features.columns.bags import NO_CELLS, BagIndex
from tagsmith.core.features.columns.coder import Coder, DerivedColumn
from tagsmith.core.features.index import Slots, columns_of_values
from tagsmith.core.features.resolve import restored
from tagsmith.core.features.resolved import BagTemplate
from tagsmith.core.inference.tree.rules import HEAD, TreeRules
from tagsmith.core.model import matchers
from tagsmith.core.model.model import EdgeAttributes, ModelAttributes, SparseModel
from tagsmith.core.model.use.usage import Usage

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
#: The rules of trees that a parser keeps.
_RULES = ("projective", "single_root")
#: Exceptions that a header with arbitrary content can cause.
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
    """The file is not a valid model."""

    default_code = "corrupt_model"


def save(model: SparseModel, path: Path) -> str:
    """Write the model and return the sha256 of the file."""
    return flat_file.save(path, MAGIC, _description(model), _arrays(model))


def load(path: Path) -> SparseModel:
    """Map a model file read-only, or raise CorruptModel."""
    try:
        model = _model(flat_file.FlatFile.open(path, MAGIC))
        _check(model)
    except CorruptModel:
        raise
    except Invalid as error:
        raise CorruptModel(error.message) from None
    except _WRONG as error:
        raise CorruptModel(
            f"The model file is damaged ({error.__class__.__name__}). Upload it again."
        ) from None
    return model


def _description(model: SparseModel) -> dict[str, Any]:
    trees = model.trees
    return {
        "labels": list(model.labels),
        "features": model.features.record(),
        "matchers": matchers.description(model.coder.matched),
        "usage": model.usage.record(),
        **({} if trees is None else {"trees": {name: getattr(trees, name) for name in _RULES}}),
    }


def _arrays(model: SparseModel) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for i, vocabulary in enumerate(model.coder.vocabularies):
        for part in matchers.VOCABULARY:
            arrays[f"vocabulary.{i}.{part}"] = getattr(vocabulary, part)
    for i, derived in enumerate(model.coder.derived):
        arrays[f"derived.{i}.of_base"] = derived.of_base
    arrays |= matchers.arrays(model.coder.matched)
    arrays["table.keys"], arrays["table.rows"] = model.table.keys, model.table.rows
    for field in fields(ModelAttributes):
        arrays[f"attributes.{field.name}"] = getattr(model.attributes, field.name)
    arrays["transitions"] = model.transitions
    for i, bag in enumerate(model.bags):
        for part in matchers.VOCABULARY:
            arrays[f"family.{i}.{part}"] = getattr(bag.vocabulary, part)
        arrays[f"family.{i}.attributes"] = bag.attributes
        arrays[f"family.{i}.of_base.starts"] = bag.of_base.starts
        arrays[f"family.{i}.of_base.ids"] = bag.of_base.ids
    if model.edges is not None:
        arrays["edges.keys"], arrays["edges.rows"] = model.edges.table.keys, model.edges.table.rows
        for field in fields(ModelAttributes):
            arrays[f"edges.{field.name}"] = getattr(model.edges.attributes, field.name)
    return arrays


def _model(source: flat_file.FlatFile) -> SparseModel:
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
    return SparseModel(
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
        attributes=ModelAttributes(
            **{name: array(f"attributes.{name}", dtype) for name, dtype in _ATTRIBUTES.items()}
        ),
        transitions=array("transitions", np.float32, dimensions=2),
        edges=EdgeAttributes(
            Table(array("edges.keys", np.uint64), array("edges.rows", np.int32)),
            ModelAttributes(**{name: array(f"edges.{name}", dtype) for name, dtype in _EDGES.items()}),
        )
        if features.rich
        else None,
        bags=tuple(_bag(source, i, spec) for i, spec in enumerate(features.bags)),
        usage=Usage.of(header.get("usage", {})),
        trees=_rules(header["trees"]) if features.structure == "tree" else None,
    )


def _rules(entry: dict[str, Any]) -> TreeRules:
    rules = TreeRules(present=True, **{name: entry[name] for name in _RULES})
    if not all(type(value) is bool for value in rules):
        raise ValueError("The rules of trees are not booleans.")
    return rules


def _bag(source: flat_file.FlatFile, number: int, spec: BagTemplate) -> BagIndex:
    def array(name: str, dtype: Any) -> NDArray[Any]:
        return source.array(f"family.{number}.{name}", dtype)

    return BagIndex(
        spec,
        Vocabulary(**{part: array(part, dtype) for part, dtype in matchers.VOCABULARY.items()}),
        array("attributes", np.int32),
        Cells(array("of_base.starts", np.int64), array("of_base.ids", np.int32), NO_CELLS.values),
    )


def _check(model: SparseModel) -> None:
    """Check that every index a kernel follows is valid, and that every search ends."""
    labels = len(model.labels)
    sound = (
        labels > 0
        and len(set(model.labels)) == labels
        and model.features.columns == len(model.coder.base)
        and model.transitions.shape == (labels, labels)
        and bool(np.isfinite(model.transitions).all())
        and (_tags_are_sound(model) if model.trees is None else _arcs_are_sound(model))
        and all(
            len(d.of_base) == len(model.coder.base[d.spec.of])
            and (
                len(d.of_base) == 0 or -1 <= int(d.of_base.min()) <= int(d.of_base.max()) < len(d.vocabulary)
            )
            for d in model.coder.derived
        )
    )
    if not sound:
        raise CorruptModel("The arrays of the model file are inconsistent.")


def _tags_are_sound(model: SparseModel) -> bool:
    """Whether the attributes of a tagger are sound."""
    kinds = [(model.attributes, model.slots, model.table, len(model.labels))]
    if model.edges is not None:
        kinds.append((model.edges.attributes, model.edge_slots, model.edges.table, len(model.labels) ** 2))
    return (
        all(_attributes_are_sound(a, slots.starts, table, labels) for a, slots, table, labels in kinds)
        and all(_values_are_known(a, slots, model) for a, slots, _, _ in kinds)
        and all(_bag_is_sound(bag, model) for bag in model.bags)
        and _bags_share_nothing(model)
    )


def _arcs_are_sound(model: SparseModel) -> bool:
    """Whether the attributes of a parser are sound. It has neither transitions nor bags."""
    a, places = model.attributes, model.arc_places
    return (
        model.labels[0] == HEAD
        and not model.transitions.any()
        and not model.bags
        and a.size == a.singles
        and _attributes_are_sound(a, places.starts, model.table, len(model.labels))
        and arc_values_are_known(
            places, a.templates, a.value_starts, a.values, [*map(len, model.coder.vocabularies)]
        )
    )


def _attributes_are_sound(
    a: ModelAttributes, slot_starts: NDArray[np.int32], table: Table, labels: int
) -> bool:
    return (
        _rises(a.starts, a.size, len(a.labels))
        and len(a.labels) == len(a.weights)
        and matchers.within(a.labels, 0, labels)
        and bool(np.isfinite(a.weights).all())
        and matchers.within(a.templates, 0, len(slot_starts) - 1)
        and _rises(a.value_starts, a.singles, len(a.values))
        and bool((np.diff(a.value_starts) == np.diff(slot_starts)[a.templates]).all())
        and matchers.is_sound(table, a.singles)
    )


def _values_are_known(a: ModelAttributes, slots: Slots, model: SparseModel) -> bool:
    """Whether every value of an attribute has a name."""
    sizes = np.array([len(vocabulary) for vocabulary in model.coder.vocabularies], np.int64)
    columns = columns_of_values(slots, a.templates, a.value_starts)
    return bool((a.values < sizes[columns]).all())


def _bag_is_sound(bag: BagIndex, model: SparseModel) -> bool:
    a, cells, derivation = model.attributes, bag.of_base, bag.spec.derivation
    values = 0 if derivation is None else len(model.coder.base[derivation.of])
    return (
        len(bag.attributes) == len(bag.vocabulary)
        and matchers.within(bag.attributes - a.singles, 0, a.size - a.singles)
        and _rises(cells.starts, values, len(cells.ids))
        and matchers.within(cells.ids, 0, len(bag.vocabulary))
    )


def _bags_share_nothing(model: SparseModel) -> bool:
    """Whether every bag attribute belongs to exactly one entry of one bag, which names it."""
    singles, size = model.attributes.singles, model.attributes.size
    every = [bag.attributes for bag in model.bags]
    found = np.concatenate([np.empty(0, np.int32), *every])
    return len(found) == size - singles and len(np.unique(found)) == len(found)


def _rises(starts: NDArray[np.int64], count: int, end: int) -> bool:
    return (
        len(starts) == count + 1
        and starts[0] == 0
        and starts[-1] == end
        and bool((np.diff(starts) >= 0).all())
    )
