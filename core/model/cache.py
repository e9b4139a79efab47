"""Model files on local disk, fetched once a machine, mapped by every process that serves them.

A file is written beside its place, checked, made durable and only then renamed, so what stands under a final
name is whole. The partial file is also the lock: whoever holds its flock fetches, all others of the machine
wait and then find the result.
"""

import contextlib
import fcntl
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from core.errors import Invalid, Unavailable

T = TypeVar("T")

Fetch = Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class _Opened(Generic[T]):
    model: T
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Usage:
    """How a cache was used by this process since it was made, and what it holds."""

    #: Times a model was asked for and open.
    hits: int
    #: Times a model had to be opened: for someone who waits, or ahead of it when an alias moves.
    misses: int
    open_models: int


class ModelCache(Generic[T]):
    """Open models by checksum, least recently used dropped first, both from memory and from disk.

    `open_model` maps a file into an object. Dropping one that is still in use is safe: the object lives as
    long as somebody refers to it, and the pages of an unlinked file live as long as the mapping.
    """

    def __init__(self, directory: Path, max_bytes: int, open_model: Callable[[Path, str], T]) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._open_model = open_model
        self._opened: OrderedDict[str, _Opened[T]] = OrderedDict()
        self._hits = self._misses = 0
        self._lock = threading.Lock()  # guards these three only; never held during input or output

    def peek(self, sha256: str) -> T | None:
        """Give the model if it is open already. Never blocks on disk, so an event loop may call it."""
        with self._lock:
            opened = self._opened.get(sha256)
            if opened is None:
                return None
            self._hits += 1
            self._opened.move_to_end(sha256)
            return opened.model

    def load(self, sha256: str, fetch: Fetch) -> T:
        """Give the model, from memory, from disk, or from `fetch`. Blocks; call it in a thread."""
        found = self.peek(sha256)
        if found is not None:
            return found
        path = self._ensure(sha256, fetch)
        try:
            model = self._open_model(path, sha256)
        except (Invalid, FileNotFoundError):
            # The disk damaged the file, or another process made room by dropping it: fetch it once more.
            path.unlink(missing_ok=True)
            path = self._ensure(sha256, fetch)
            model = self._open_model(path, sha256)
        return self._remember(sha256, model, path.stat().st_size)

    def open_file(self, sha256: str, fetch: Fetch) -> BinaryIO:
        """Open the file itself for reading; it stays readable when it is dropped meanwhile."""
        while True:
            try:
                return self._ensure(sha256, fetch).open("rb")
            except FileNotFoundError:
                continue  # dropped by another process between the two steps

    def forget(self, sha256: str) -> None:
        """Drop a model from memory and disk."""
        with self._lock:
            self._opened.pop(sha256, None)
        self._path(sha256).unlink(missing_ok=True)

    @property
    def usage(self) -> Usage:
        """How it was used so far."""
        with self._lock:
            return Usage(self._hits, self._misses, len(self._opened))

    @property
    def stored_bytes(self) -> int:
        """Size of the model files on local disk, which all processes of the machine share. Reads the folder."""
        return sum(size for _, size, _ in self._files())

    @property
    def open_bytes(self) -> int:
        """Size of the models open now."""
        with self._lock:
            return sum(opened.size_bytes for opened in self._opened.values())

    def _path(self, sha256: str) -> Path:
        return self._directory / f"{sha256}.model"

    def _remember(self, sha256: str, model: T, size_bytes: int) -> T:
        with self._lock:
            self._misses += 1
            # Two threads may have opened the same file; all use the first, so its pages are counted once.
            kept = self._opened.setdefault(sha256, _Opened(model, size_bytes))
            self._opened.move_to_end(sha256)
            total = sum(opened.size_bytes for opened in self._opened.values())
            while total > self._max_bytes and len(self._opened) > 1:
                _, dropped = self._opened.popitem(last=False)
                total -= dropped.size_bytes
            return kept.model

    def _ensure(self, sha256: str, fetch: Fetch) -> Path:
        path = self._path(sha256)
        try:
            if not path.exists():
                self._directory.mkdir(parents=True, exist_ok=True)
                self._fetch(path, sha256, fetch)
                self._make_room(path)
            os.utime(path)  # what `_make_room` goes by
        except FileNotFoundError:
            return self._ensure(sha256, fetch)
        except OSError as error:
            raise Unavailable(
                f"The model cache cannot be used: {error.strerror}.", code="cache_unusable"
            ) from error
        return path

    def _fetch(self, path: Path, sha256: str, fetch: Fetch) -> None:
        partial = path.with_suffix(".partial")
        with _locked(partial) as file:
            if path.exists():  # another process was faster
                partial.unlink()
                return
            file.truncate(0)
            digest = hashlib.sha256()
            for chunk in fetch():
                digest.update(chunk)
                file.write(chunk)
            if digest.hexdigest() != sha256:
                partial.unlink()
                raise Unavailable(
                    "The stored bytes of this model do not match their checksum.", code="model_damaged"
                )
            file.flush()
            os.fsync(file.fileno())
            partial.rename(path)
            _sync_directory(self._directory)

    def _files(self) -> list[tuple[float, int, Path]]:
        """The files on disk: when each was last used, its size, its path."""
        files: list[tuple[float, int, Path]] = []
        for path in self._directory.glob("*.model"):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        return files

    def _make_room(self, newest: Path) -> None:
        files = self._files()
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._max_bytes:
                return
            if path != newest:
                path.unlink(missing_ok=True)
                total -= size


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """Open `path` with its lock held, and make sure that the name still means the file that was locked."""
    while True:
        with path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                current = path.stat()
            except FileNotFoundError:
                continue  # renamed into its place by the process we waited for
            if os.path.samestat(current, os.fstat(file.fileno())):
                yield file
                return


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
