"""The model cache against real files, threads and processes."""

import hashlib
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tagsmith.core.base.errors import Invalid, Unavailable
from tagsmith.core.model.cache import CacheUsage, ModelCache

KIB = 1024


def open_text(path: Path, sha256: str) -> bytes:
    """Stands for opening a model: reads the file and checks it, as the real one does."""
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise Invalid("damaged")
    return data


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Source:
    """Gives bytes in chunks, and counts how often it was asked."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.calls = 0

    def __call__(self) -> Iterator[bytes]:
        self.calls += 1
        for start in range(0, len(self.data), 100):
            yield self.data[start : start + 100]


@pytest.fixture
def cache(tmp_path: Path) -> ModelCache[bytes]:
    return ModelCache(tmp_path / "cache", 10 * KIB, open_text)


def files(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "cache").iterdir()}


def test_a_model_is_fetched_once_and_then_given_from_memory(cache: ModelCache[bytes], tmp_path: Path) -> None:
    source = Source(b"model" * 100)
    assert cache.peek(sha(source.data)) is None
    first = cache.load(sha(source.data), source)
    assert first == source.data
    assert cache.load(sha(source.data), source) is first
    assert cache.peek(sha(source.data)) is first
    assert source.calls == 1
    assert files(tmp_path) == {f"{sha(source.data)}.model"}


def test_a_cache_tells_how_often_a_model_was_open_and_what_is_on_disk(
    cache: ModelCache[bytes], tmp_path: Path
) -> None:
    first, second = Source(b"a" * KIB), Source(b"b" * 2 * KIB)
    assert (cache.usage, cache.stored_bytes) == (CacheUsage(0, 0, 0), 0)
    cache.peek(sha(first.data))
    for source in (first, first, second):
        cache.load(sha(source.data), source)
    cache.peek(sha(first.data))
    assert (cache.usage, cache.stored_bytes) == (CacheUsage(hits=2, misses=2, open_models=2), 3 * KIB)
    other = ModelCache(tmp_path / "cache", 10 * KIB, open_text)
    assert (other.usage, other.stored_bytes) == (CacheUsage(0, 0, 0), 3 * KIB)


def test_another_process_finds_the_file_and_fetches_nothing(cache: ModelCache[bytes], tmp_path: Path) -> None:
    source = Source(b"model" * 100)
    cache.load(sha(source.data), source)
    other = ModelCache(tmp_path / "cache", 10 * KIB, open_text)
    assert other.load(sha(source.data), source) == source.data
    assert source.calls == 1


def test_bytes_that_do_not_match_their_checksum_are_refused_and_leave_no_file(
    cache: ModelCache[bytes], tmp_path: Path
) -> None:
    with pytest.raises(Unavailable) as caught:
        cache.load("0" * 64, Source(b"something else"))
    assert caught.value.code == "model_damaged"
    assert files(tmp_path) == set()


def test_a_file_damaged_on_disk_is_fetched_again(cache: ModelCache[bytes], tmp_path: Path) -> None:
    source = Source(b"model" * 100)
    path = tmp_path / "cache" / f"{sha(source.data)}.model"
    path.parent.mkdir()
    path.write_bytes(b"rubbish")
    assert cache.load(sha(source.data), source) == source.data
    assert source.calls == 1


def test_a_partial_file_of_a_killed_process_is_written_anew(cache: ModelCache[bytes], tmp_path: Path) -> None:
    source = Source(b"model" * 100)
    partial = tmp_path / "cache" / f"{sha(source.data)}.partial"
    partial.parent.mkdir()
    partial.write_bytes(b"half a mod")
    assert cache.load(sha(source.data), source) == source.data
    assert files(tmp_path) == {f"{sha(source.data)}.model"}


def test_a_fetch_that_fails_is_raised_and_the_next_one_works(cache: ModelCache[bytes]) -> None:
    def broken() -> Iterator[bytes]:
        yield b"some"
        raise Unavailable("the database is away")

    source = Source(b"model" * 100)
    with pytest.raises(Unavailable, match="the database is away"):
        cache.load(sha(source.data), broken)
    assert cache.load(sha(source.data), source) == source.data


def test_the_least_recently_used_leave_memory_and_disk_when_the_bytes_run_out(
    cache: ModelCache[bytes], tmp_path: Path
) -> None:
    sources = [Source(bytes([65 + i]) * 4 * KIB) for i in range(3)]
    for age, source in enumerate(sources[:2]):
        cache.load(sha(source.data), source)
        os.utime(tmp_path / "cache" / f"{sha(source.data)}.model", (age, age))
    cache.peek(sha(sources[0].data))
    os.utime(tmp_path / "cache" / f"{sha(sources[0].data)}.model")
    cache.load(sha(sources[2].data), sources[2])
    assert cache.peek(sha(sources[0].data)) is not None
    assert cache.peek(sha(sources[1].data)) is None
    assert cache.open_bytes == 8 * KIB
    assert files(tmp_path) == {f"{sha(sources[i].data)}.model" for i in (0, 2)}


def test_one_model_larger_than_the_whole_cache_is_still_served(tmp_path: Path) -> None:
    cache = ModelCache(tmp_path / "cache", 1, open_text)
    source = Source(b"model" * 100)
    assert cache.load(sha(source.data), source) == source.data
    assert cache.peek(sha(source.data)) is not None


def test_an_open_file_stays_readable_when_the_cache_drops_it(cache: ModelCache[bytes]) -> None:
    source = Source(b"model" * 100)
    with cache.open_file(sha(source.data), source) as file:
        cache.forget(sha(source.data))
        assert file.read() == source.data


def test_a_folder_that_cannot_be_written_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"a file where the folder should be")
    source = Source(b"model")
    with pytest.raises(Unavailable) as caught:
        ModelCache(tmp_path / "cache", KIB, open_text).load(sha(source.data), source)
    assert caught.value.code == "cache_unusable"


def test_threads_that_want_the_same_model_share_one_fetch(cache: ModelCache[bytes]) -> None:
    source = Source(b"model" * 1000)
    got: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: got.append(cache.load(sha(source.data), source))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert source.calls == 1
    assert len({id(model) for model in got}) == 1
    assert got[0] == source.data


def _load_and_count(folder: str, data: bytes, barrier: object, counter: object) -> None:
    def fetch() -> Iterator[bytes]:
        with counter.get_lock():  # type: ignore[attr-defined]
            counter.value += 1  # type: ignore[attr-defined]
        time.sleep(0.05)  # long enough for the others to come and wait for the lock
        yield data

    cache = ModelCache(Path(folder), 10 * KIB, open_text)
    barrier.wait()  # type: ignore[attr-defined]
    assert cache.load(sha(data), fetch) == data


def test_processes_that_want_the_same_model_share_one_fetch(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, counter = context.Barrier(4), context.Value("i", 0)
    arguments = (str(tmp_path / "cache"), b"model" * 100, barrier, counter)
    processes = [context.Process(target=_load_and_count, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    assert counter.value == 1
