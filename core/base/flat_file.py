"""A flat file: a JSON header and aligned arrays. It contains no code.

    8 bytes  magic, with the version of the format
    8 bytes  length of the header, little-endian
    32 bytes sha256 of the header
    header   JSON: a description; type, shape and offset of each array; sha256 of all arrays
    arrays   each at a multiple of 64 bytes, little-endian

Equal content gives equal bytes. Models and checkpoints use this format.
"""

import hashlib
import json
import mmap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.jit import readonly

_ALIGNMENT = 64
_BEFORE_HEADER = 8 + 8 + 32
_MAX_HEADER = 64 << 20


class CorruptFile(Invalid):
    """The file is damaged, or is not of the expected kind."""

    default_code = "corrupt_file"


def save(path: Path, magic: bytes, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Write a file and return its sha256."""
    places, end = {}, 0
    for name, array in arrays.items():
        places[name] = {"dtype": array.dtype.str, "shape": list(array.shape), "at": end}
        end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    payload = hashlib.sha256()
    for piece in _pieces(arrays):
        payload.update(piece)
    header = json.dumps(
        {**description, "arrays": places, "sha256": payload.hexdigest()}, sort_keys=True, ensure_ascii=False
    ).encode("utf-8", "surrogatepass")
    header += b" " * (-(_BEFORE_HEADER + len(header)) % _ALIGNMENT)
    before = magic + len(header).to_bytes(8, "little") + hashlib.sha256(header).digest()
    whole = hashlib.sha256()
    with path.open("wb") as out:
        for piece in (before, header, *_pieces(arrays)):
            out.write(piece)
            whole.update(piece)
    return whole.hexdigest()


def _pieces(arrays: Mapping[str, NDArray[Any]]) -> Iterator[bytes | memoryview]:
    for array in arrays.values():
        yield np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
        yield b"\x00" * (-array.nbytes % _ALIGNMENT)


def header_of(chunks: Iterable[bytes], magic: bytes) -> dict[str, Any]:
    """Read the header of a trusted file from its first chunks, without the arrays."""
    found = b""
    size = _BEFORE_HEADER
    for chunk in chunks:
        found += chunk
        if len(found) >= _BEFORE_HEADER:
            size = _BEFORE_HEADER + int.from_bytes(found[8:16], "little")
        if len(found) >= size:
            break
    if found[:8] != magic or len(found) < size:
        raise CorruptFile("The file is of another kind or truncated.")
    header: dict[str, Any] = json.loads(found[_BEFORE_HEADER:size].decode("utf-8", "surrogatepass"))
    return header


@dataclass(frozen=True, eq=False)
class FlatFile:
    """A file mapped read-only. Its checksums are correct."""

    header: dict[str, Any]
    payload: NDArray[np.uint8]

    @staticmethod
    def open(path: Path, magic: bytes) -> "FlatFile":
        """Map a file, or raise CorruptFile. The caller must validate the header."""
        try:
            with path.open("rb") as source:
                region = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise CorruptFile(f"The file cannot be read ({error.__class__.__name__}).") from None
        raw = np.frombuffer(region, np.uint8)
        if raw[:8].tobytes() != magic:
            raise CorruptFile("The file is of another kind or of another format version.")
        length = int.from_bytes(raw[8:16].tobytes(), "little")
        if length > min(_MAX_HEADER, len(raw) - _BEFORE_HEADER):
            raise CorruptFile("The file is truncated.")
        text, payload = raw[_BEFORE_HEADER:][:length].tobytes(), raw[_BEFORE_HEADER + length :]
        if hashlib.sha256(text).digest() != raw[16:_BEFORE_HEADER].tobytes():
            raise CorruptFile("The file's header is damaged.")
        try:
            header = json.loads(text.decode("utf-8", "surrogatepass"))
            sound = hashlib.sha256(payload.data).hexdigest() == header["sha256"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptFile(f"The file's header is damaged ({error.__class__.__name__}).") from None
        if not sound:
            raise CorruptFile("The file's checksum does not match its content.")
        return FlatFile(header, payload)

    def array(self, name: str, dtype: Any, dimensions: int = 1) -> NDArray[Any]:
        """Return an array of the file, or raise CorruptFile if its type is not the expected one."""
        place = self.header["arrays"][name]
        shape, at = [int(n) for n in place["shape"]], int(place["at"])
        size = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
        expected = np.dtype(dtype).newbyteorder("<").str
        if place["dtype"] != expected or len(shape) != dimensions or min(shape, default=0) < 0:
            raise CorruptFile(f"The array {name} has the wrong type.")
        if at < 0 or at % _ALIGNMENT or at + size > len(self.payload):
            raise CorruptFile(f"The array {name} lies outside the file.")
        return readonly(self.payload[at : at + size].view(np.dtype(dtype)).reshape(shape), dtype)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays with the types given in the header. Only for trusted files."""
        return {
            name: self.array(name, np.dtype(place["dtype"]).newbyteorder("=").type, len(place["shape"]))
            for name, place in self.header["arrays"].items()
        }
