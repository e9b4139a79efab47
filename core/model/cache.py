"""Cache of model files on local disk: fetched once per machine, and mapped by every process that serves them.

A file is written under a temporary name, checked, synced and then renamed, so a file with its final name is complete.
The partial file is also the lock: the process that holds its flock fetches the file, and all others of the machine wait
for it.
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

from tagsmith.core.base.errors import Invalid, Unavailable

T = TypeVar("T")

Fetch = Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class _Opened(Generic[T]):
    model: T
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """Usage of the cache by this process."""

    #: Model cache hits.
    hits: int
    #: Model cache misses: models opened for a request, or in advance when an alias moves.
    misses: int
    open_models: int


class ModelCache(Generic[T]):
    """Open models by checksum. The least recently used are evicted first, from memory and from disk.

    `open_model` maps a file into an object. Evicting a model that is in use is safe: the object lives as long as there
    are references to it, and the pages of an unlinked file live as long as the mapping.
    """

    def __init__(self, directory: Path, max_bytes: int, open_model: Callable[[Path, str], T]) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._open_model = open_model
        self._opened: OrderedDict[str, _Opened[T]] = OrderedDict()
        self._hits = self._misses = 0
        self._lock = threading.Lock()  # guards these three only; not held during I/O

    def peek(self, sha256: str) -> T | None:
        """Return the model if it is open. Never blocks on disk, so an event loop can call it."""
        with self._lock:
            opened = self._opened.get(sha256)
            if opened is None:
                return None
            self._hits += 1
            self._opened.move_to_end(sha256)
            return opened.model

    def is_open(self, sha256: str) -> bool:
        """Whether the model is open. This does not count as a use of it."""
        with self._lock:
            return sha256 in self._opened

    def load(self, sha256: str, fetch: Fetch) -> T:
        """Return the model, from memory, from disk, or from `fetch`. Blocks; call it in a thread."""
        found = self.peek(sha256)
        if found is not None:
            return found
        path = self._ensure(sha256, fetch)
        try:
            model = self._open_model(path, sha256)
        except (Invalid, FileNotFoundError):
            # The file is damaged, or another process evicted it: fetch it again.
            path.unlink(missing_ok=True)
            path = self._ensure(sha256, fetch)
            model = self._open_model(path, sha256)
        return self._remember(sha256, model, path.stat().st_size)

    def open_file(self, sha256: str, fetch: Fetch) -> BinaryIO:
        """Open the file itself for reading; it stays readable if it is evicted meanwhile."""
        while True:
            try:
                return self._ensure(sha256, fetch).open("rb")
            except FileNotFoundError:
                continue  # evicted by another process between the two steps

    def forget(self, sha256: str) -> None:
        """Remove a model from memory and disk."""
        with self._lock:
            self._opened.pop(sha256, None)
        self._path(sha256).unlink(missing_ok=True)

    @property
    def usage(self) -> CacheUsage:
        """Usage so far."""
        with self._lock:
            return CacheUsage(self._hits, self._misses, len(self._opened))

    @property
    def stored_bytes(self) -> int:
        """Size of the model files on local disk, shared by all processes of the machine. Reads the folder."""
        return sum(size for _, size, _ in self._files())

    @property
    def open_bytes(self) -> int:
        """Size of the open models."""
        with self._lock:
            return sum(opened.size_bytes for opened in self._opened.values())

    def _path(self, sha256: str) -> Path:
        return self._directory / f"{sha256}.model"

    def _remember(self, sha256: str, model: T, size_bytes: int) -> T:
        with self._lock:
            self._misses += 1
            # Two threads may have opened the same file. All use the first, so its pages are counted once.
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
            os.utime(path)  # `_make_room` sorts by this time
        except FileNotFoundError:
            return self._ensure(sha256, fetch)
        except OSError as error:
            raise Unavailable(
                f"The model cache is not usable: {error.strerror}. Check the folder and its disk.",
                code="cache_unusable",
            ) from error
        return path

    def _fetch(self, path: Path, sha256: str, fetch: Fetch) -> None:
        partial = path.with_suffix(".partial")
        with _locked(partial) as file:
            if path.exists():  # another process fetched it meanwhile
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
                    "The stored bytes of this model do not match their checksum. Delete this version.",
                    code="model_damaged",
                )
            file.flush()
            os.fsync(file.fileno())
            partial.rename(path)
            _sync_directory(self._directory)

    def _files(self) -> list[tuple[float, int, Path]]:
        """Return the files on disk: time of last use, size, path."""
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
    """Open and lock `path`, and make sure that the name still refers to the locked file."""
    while True:
        with path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                current = path.stat()
            except FileNotFoundError:
                continue  # renamed by the process that held the lock
            if os.path.samestat(current, os.fstat(file.fileno())):
                yield file
                return


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
