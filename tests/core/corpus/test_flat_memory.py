"""Inputs made to fill the memory, and how little they fill."""

import zlib
from collections.abc import Iterator

import pytest
import zstandard

from tagsmith.core.base.errors import Invalid, TooLarge
from tagsmith.core.corpus.content_encoding import decoded
from tagsmith.core.corpus.formats import conll
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.conllu import read_conllu
from tagsmith.core.corpus.formats.segmented import read_segmented
from tests.core.corpus.samples import PeakMemory

MIB = 1 << 20
GIB = 1 << 30

#: A line, a batch, a step of each decompressor and a window of zstd.
FLAT_BYTES = 24 * MIB


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    conll.warm()


def test_the_measure_sees_memory_that_was_used_and_freed() -> None:
    with PeakMemory() as peak:
        used = len(bytearray(64 * MIB).replace(b"\0", b"x"))
    assert used == 64 * MIB
    assert peak.grown_bytes > 60 * MIB


def gzip_bomb() -> bytes:
    """One gzip member of 2 GiB of zeros: a fully flushed block of 16 MiB, over and over."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(16 * MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    zeros, checksum = bytes(16 * MIB), 0
    for _ in range(128):
        checksum = zlib.crc32(zeros, checksum)
    end = zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    trailer = checksum.to_bytes(4, "little") + (2 * GIB).to_bytes(4, "little")
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block * 128 + end + trailer


def zstd_bomb() -> bytes:
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    zeros = bytes(16 * MIB)
    return b"".join(packer.compress(zeros) for _ in range(128)) + packer.flush()


@pytest.fixture(scope="module", params=["gzip", "zstd"])
def bomb(request: pytest.FixtureRequest) -> tuple[str, bytes]:
    data = gzip_bomb() if request.param == "gzip" else zstd_bomb()
    assert len(data) < 4 * MIB
    return request.param, data


def test_a_bomb_of_two_gigabytes_stops_at_the_limit(bomb: tuple[str, bytes]) -> None:
    encoding, data = bomb
    with PeakMemory() as peak, pytest.raises(TooLarge):
        read_conll(decoded([data], encoding, max_decoded_bytes=GIB), max_line_bytes=MIB)
    assert peak.grown_bytes < FLAT_BYTES


def test_a_bomb_under_the_limit_is_one_long_line(bomb: tuple[str, bytes]) -> None:
    encoding, data = bomb
    with PeakMemory() as peak, pytest.raises(Invalid) as caught:
        read_conll(decoded([data], encoding, max_decoded_bytes=2 * GIB), max_line_bytes=MIB)
    assert [(fault.line, fault.reason) for fault in caught.value.faults] == [(1, f"longer than {MIB} bytes")]
    assert peak.grown_bytes < FLAT_BYTES


def test_a_line_of_100_mb_is_never_held() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"good X\n"
        for _ in range(100):
            yield b"y" * MIB
        yield b" X\nragged\n"

    with PeakMemory() as peak, pytest.raises(Invalid) as caught:
        read_conll(chunks(), max_line_bytes=MIB)
    assert [fault.line for fault in caught.value.faults] == [2, 3]
    assert peak.grown_bytes < FLAT_BYTES


def test_a_line_of_100_mb_in_one_chunk_costs_only_the_chunk() -> None:
    data = b"y " * (50 * MIB)
    with PeakMemory() as peak, pytest.raises(Invalid):
        read_conll([data], max_line_bytes=MIB)
    assert peak.grown_bytes < FLAT_BYTES


def test_a_million_columns_cost_one_fault() -> None:
    with PeakMemory() as peak, pytest.raises(Invalid) as caught:
        read_conll([b"a " * (MIB // 2 - 1) + b"\n"], max_line_bytes=MIB)
    assert caught.value.faults[0].reason == f"{MIB // 2 - 1} columns; the limit is 256"
    assert peak.grown_bytes < FLAT_BYTES


def test_a_good_corpus_of_100_mb_costs_its_integers() -> None:
    block = b"".join(b"word%d TAG%d LABEL%d\n" % (i, i % 40, i % 20) for i in range(2000)) + b"\n"
    repeats = 100 * MIB // len(block)
    with PeakMemory() as peak:
        corpus = read_conll((block for _ in range(repeats)), max_line_bytes=MIB)
    assert corpus.tokens == 2000 * repeats
    # Three columns of four bytes; one column more while its blocks are joined.
    assert peak.grown_bytes < 16 * corpus.tokens + FLAT_BYTES


def test_good_corpora_of_other_formats_cost_their_integers_too() -> None:
    word = b"%d\tword%d\t_\tTAG%d" + b"\t_" * 6 + b"\n"
    block = b"".join(word % (i + 1, i, i % 40) for i in range(2000)) + b"\n"
    with PeakMemory() as peak:
        corpus = read_conllu((block for _ in range(1000)), max_line_bytes=MIB)
    assert corpus.tokens == 2_000_000
    assert peak.grown_bytes < 16 * corpus.tokens + FLAT_BYTES
    line = "".join(f"字词{i % 10}  好  " for i in range(500)).encode() + b"\n"
    with PeakMemory() as peak:
        corpus = read_segmented((line for _ in range(1000)), max_line_bytes=MIB)
    assert corpus.tokens == 2_000_000
    assert peak.grown_bytes < 16 * corpus.tokens + FLAT_BYTES


def test_text_after_a_fault_is_not_kept() -> None:
    block = b"".join(b"word%d X\n" % i for i in range(100_000))
    with PeakMemory() as peak, pytest.raises(Invalid):
        read_conll((b"a\n" if i == 0 else block for i in range(60)), max_line_bytes=MIB)
    assert peak.grown_bytes < FLAT_BYTES
