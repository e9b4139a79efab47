"""Import of model files: detect the program that wrote a file, and convert it to our format."""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from tagsmith.core.base.errors import Invalid
from tagsmith.core.model import file, untrusted
from tagsmith.core.model.file import CorruptModel
from tagsmith.core.model.foreign import crfpp, crfsuite, wapiti
from tagsmith.core.model.model import SparseModel

ModelFormat = Literal["tagsmith", "crfsuite", "crfpp", "wapiti"]

_READERS: Mapping[ModelFormat, Callable[[Path], SparseModel]] = {
    "crfsuite": crfsuite.read,
    "crfpp": crfpp.read,
    "wapiti": wapiti.read,
}
_MAGICS: Mapping[bytes, ModelFormat] = {
    file.MAGIC: "tagsmith",
    crfsuite.MAGIC: "crfsuite",
    crfpp.MAGIC: "crfpp",
    wapiti.MAGIC: "wapiti",
}


@dataclass(frozen=True, eq=False, slots=True)
class ImportedModel:
    """An imported model, checked and ready to be stored."""

    format: ModelFormat
    model: SparseModel


def known_format(name: str) -> ModelFormat:
    """Return the format of that name, or raise Invalid."""
    for known in get_args(ModelFormat):
        if name == known:
            return known  # type: ignore[no-any-return]  # get_args is untyped
    raise Invalid(
        f"The format {name!r} is unknown. Use one of {', '.join(get_args(ModelFormat))}.",
        code="unknown_format",
    )


def import_model(source: Path, target: Path, given: ModelFormat | None = None) -> ImportedModel:
    """Convert a file of any known format to a model file at `target`, or raise CorruptModel.

    A file of our own format is copied, so its checksum stays the same.
    """
    written_by = given or _detected(source)
    if written_by == "tagsmith":
        shutil.copyfile(source, target)
    else:
        model = _READERS[written_by](source)
        untrusted.check(model)
        file.save(model, target)
    return ImportedModel(written_by, untrusted.opened(target))


def open_model(source: Path) -> SparseModel:
    """Open a file of any known format, or raise CorruptModel."""
    written_by = _detected(source)
    if written_by == "tagsmith":
        return untrusted.opened(source)
    # The model stays mapped after its file is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return import_model(source, Path(folder) / "model", written_by).model


def _detected(source: Path) -> ModelFormat:
    with source.open("rb") as opened:
        start = opened.read(64)
    for magic, written_by in _MAGICS.items():
        if start.startswith(magic):
            return written_by
    raise CorruptModel("The file is not a model of Tagsmith, CRFsuite, CRF++ (text) or Wapiti.")
