"""Checkpoints: the arrays of a trainer's state and the values of the loop, in one flat file.

Only the job that wrote a checkpoint can read it, with the same spec and corpus. Any other file is rejected.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tagsmith.core.base import flat_file
from tagsmith.core.base.flat_file import CorruptFile

MAGIC = b"TAGSMCP\x02"

#: The values of the loop that are not arrays.
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
    """Write a checkpoint: the loop values of the current run, and the results `carried` over from earlier runs.

    Between two runs, `kept` is None and only the carried results are written.
    """
    flat_file.save(
        path, MAGIC, {"kept": None if kept is None else dict(kept), "carried": list(carried)}, arrays
    )


def carried_over(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """Return the results carried over from earlier runs, and whether the checkpoint is inside the next run."""
    header = flat_file.FlatFile.open(path, MAGIC).header
    carried = header.get("carried")
    if not isinstance(carried, list) or "kept" not in header:
        raise CorruptFile("The checkpoint was written by another version of the program.")
    return carried, header["kept"] is not None


def load(path: Path, like: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a checkpoint whose arrays have the shapes and types of those in `like`."""
    source = flat_file.FlatFile.open(path, MAGIC)
    arrays = source.arrays()
    for name, array in like.items():
        if name not in arrays or (arrays[name].shape, arrays[name].dtype) != (array.shape, array.dtype):
            raise CorruptFile("The checkpoint belongs to another run.")
    kept = source.header.get("kept")
    if not isinstance(kept, dict) or kept.keys() != set(KEPT):
        raise CorruptFile("The checkpoint was written by another version of the program.")
    return kept, arrays
