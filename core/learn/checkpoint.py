"""Checkpoints: the arrays of a trainer's state and the few numbers the loop keeps, in one flat file.

A checkpoint is read by the same job that wrote it, with the same spec and corpus; anything else is refused.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from core import flat_file
from core.flat_file import CorruptFile

MAGIC = b"TAGSMCP\x02"

#: What the loop keeps besides arrays.
KEPT = (
    "seconds",
    "passes",
    "objective",
    "objective_kind",
    "change",
    "active",
    "best_score",
    "best_pass",
    "curve",
)


def save(
    path: Path,
    kept: Mapping[str, Any] | None,
    arrays: Mapping[str, NDArray[Any]],
    carried: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write a checkpoint: what the loop keeps of a run, and what was `carried` over from runs before it.

    Between two runs there is only the latter; `kept` is then None.
    """
    flat_file.save(
        path, MAGIC, {"kept": None if kept is None else dict(kept), "carried": list(carried)}, arrays
    )


def carried_over(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """What a checkpoint carried over from runs before, and whether it stands in the middle of the next."""
    header = flat_file.FlatFile.open(path, MAGIC).header
    carried = header.get("carried")
    if not isinstance(carried, list) or "kept" not in header:
        raise CorruptFile("The checkpoint is of another version of the program")
    return carried, header["kept"] is not None


def load(path: Path, like: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a checkpoint whose arrays have the shapes and types of those in `like`."""
    source = flat_file.FlatFile.open(path, MAGIC)
    arrays = source.arrays()
    for name, array in like.items():
        if name not in arrays or (arrays[name].shape, arrays[name].dtype) != (array.shape, array.dtype):
            raise CorruptFile("The checkpoint is of another run")
    kept = source.header.get("kept")
    if not isinstance(kept, dict) or kept.keys() != set(KEPT):
        raise CorruptFile("The checkpoint is of another version of the program")
    return kept, arrays
