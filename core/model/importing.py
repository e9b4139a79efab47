"""Model files that people bring: which program wrote one, and the model it holds as a file of ours."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from core.errors import Invalid
from core.model import file, untrusted
from core.model.file import CorruptModel
from core.model.foreign import crfpp, crfsuite, wapiti
from core.model.model import Model

Format = Literal["tagsmith", "crfsuite", "crfpp", "wapiti"]

_READERS: Mapping[Format, Callable[[Path], Model]] = {
    "crfsuite": crfsuite.read,
    "crfpp": crfpp.read,
    "wapiti": wapiti.read,
}
_MAGICS: Mapping[bytes, Format] = {
    file.MAGIC: "tagsmith",
    crfsuite.MAGIC: "crfsuite",
    crfpp.MAGIC: "crfpp",
    wapiti.MAGIC: "wapiti",
}


@dataclass(frozen=True, eq=False, slots=True)
class Imported:
    """A model that came from elsewhere, checked and ready to be stored."""

    format: Format
    model: Model


def known_format(name: str) -> Format:
    """The format of that name, or Invalid."""
    for known in get_args(Format):
        if name == known:
            return known  # type: ignore[no-any-return]  # what get_args gives is untyped
    raise Invalid(f"{name!r} is not one of {', '.join(get_args(Format))}", code="unknown_format")


def import_model(source: Path, target: Path, said: Format | None = None) -> Imported:
    """Write the model of a file of any known format to `target`, or raise CorruptModel.

    A file of ours stays as it is, so that its checksum does.
    """
    written_by = said or _detected(source)
    if written_by == "tagsmith":
        shutil.copyfile(source, target)
    else:
        model = _READERS[written_by](source)
        untrusted.check(model)
        file.save(model, target)
    return Imported(written_by, untrusted.opened(target))


def _detected(source: Path) -> Format:
    with source.open("rb") as opened:
        start = opened.read(64)
    for magic, written_by in _MAGICS.items():
        if start.startswith(magic):
            return written_by
    raise CorruptModel("The file is no model of Tagsmith, nor of a program whose models can be read")
