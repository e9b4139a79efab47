import gzip
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid, TooLarge, Unsupported
from tagsmith.core.corpus.content_encoding import Decoder, decoded
from tests.core.corpus.samples import pieces

MANY = 1 << 30
TEXT = b"".join(b"word%d X L%d\n" % (i % 977, i % 13) for i in range(30_000))


def streamed_zstd(data: bytes, level: int = 3) -> bytes:
    """As a client that does not know the length beforehand sends it."""
    packer = zstandard.ZstdCompressor(level=level).compressobj()
    return packer.compress(data) + packer.flush()


PACKED = {
    "gzip": gzip.compress(TEXT),
    "zstd": zstandard.compress(TEXT),
}
EMPTY = {"gzip": gzip.compress(b""), "zstd": zstandard.compress(b"")}


def undone(data: bytes, encoding: str | None, size: int = 1 << 16, limit: int = MANY) -> bytes:
    return b"".join(decoded(pieces(data, size), encoding, max_decoded_bytes=limit))


@pytest.mark.parametrize("size", [1, 7, 127, 128, 129, 16_384, 1 << 20])
@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_what_was_packed_comes_back_however_it_is_cut(encoding: str, size: int) -> None:
    assert undone(PACKED[encoding], encoding, size) == TEXT


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5), st.integers(1, 50))
def test_members_and_frames_in_a_row_are_one_stream(parts: list[bytes], size: int) -> None:
    expected = b"".join(parts)
    assert undone(b"".join(map(gzip.compress, parts)), "gzip", size) == expected
    assert undone(b"".join(map(zstandard.compress, parts)), "zstd", size) == expected
    assert undone(b"".join(map(streamed_zstd, parts)), "zstd", size) == expected


def test_zero_bytes_after_a_gzip_member_are_padding() -> None:
    packed = gzip.compress(b"one") + bytes(700) + gzip.compress(b"two") + bytes(3)
    assert undone(packed, "gzip", 11) == b"onetwo"


def test_a_skippable_zstd_frame_is_skipped() -> None:
    skippable = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    assert undone(zstandard.compress(b"a") + skippable + zstandard.compress(b"b"), "zstd", 3) == b"ab"


@pytest.mark.parametrize("encoding", [None, "", "identity", "Identity"])
def test_plain_data_passes_through(encoding: str | None) -> None:
    assert undone(TEXT, encoding) == TEXT


@pytest.mark.parametrize("encoding", ["GZIP", "x-gzip", " gzip "])
def test_names_are_read_as_http_writes_them(encoding: str) -> None:
    assert undone(PACKED["gzip"], encoding) == TEXT


@pytest.mark.parametrize("encoding", ["br", "deflate", "compress", "gzip, gzip", "gzip,zstd", "*"])
def test_an_unknown_encoding_is_unsupported(encoding: str) -> None:
    with pytest.raises(Unsupported) as caught:
        Decoder(encoding, max_decoded_bytes=MANY)
    assert caught.value.code == "unsupported_encoding"
    assert "identity, gzip or zstd" in caught.value.message


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_data_that_stops_short_is_invalid_wherever_it_stops(encoding: str) -> None:
    packed = PACKED[encoding]
    small = EMPTY[encoding]
    cuts = [(packed, c) for c in (0, 1, 2, 9, 10, 500, len(packed) // 2, len(packed) - 8, len(packed) - 1)]
    for data, cut in cuts + [(small, c) for c in range(len(small))]:
        with pytest.raises(Invalid) as caught:
            undone(data[:cut], encoding)
        assert caught.value.code == "corrupt_encoding"
        assert caught.value.faults


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_second_member_that_stops_short_is_invalid(encoding: str) -> None:
    with pytest.raises(Invalid):
        undone(PACKED[encoding] + PACKED[encoding][:-3], encoding)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("data", [TEXT[:300], b"\n", bytes(50), b"PK\x03\x04" + bytes(30)])
def test_data_of_another_kind_is_invalid(encoding: str, data: bytes) -> None:
    with pytest.raises(Invalid) as caught:
        undone(data, encoding)
    assert caught.value.code == "corrupt_encoding"


def test_garbage_after_a_gzip_member_is_invalid() -> None:
    with pytest.raises(Invalid):
        undone(PACKED["gzip"] + b"garbage", "gzip")


def test_a_flipped_bit_in_gzip_data_is_invalid() -> None:
    broken = bytearray(PACKED["gzip"])
    broken[len(broken) // 2] ^= 0x10
    with pytest.raises(Invalid):
        undone(bytes(broken), "gzip")


def test_a_zstd_frame_with_a_checksum_and_a_flipped_bit_is_invalid() -> None:
    broken = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(TEXT))
    broken[len(broken) // 2] ^= 0x10
    with pytest.raises(Invalid):
        undone(bytes(broken), "zstd")


def test_a_zstd_frame_that_wants_a_huge_window_is_invalid() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with pytest.raises(Invalid):
        undone(packer.compress(TEXT) + packer.flush(), "zstd")


@pytest.mark.parametrize("level", [1, 3, 19])
def test_zstd_at_the_usual_levels_fits_the_window(level: int) -> None:
    data = TEXT * 40  # 16 MB: more than any usual window
    assert undone(streamed_zstd(data, level), "zstd") == data


@pytest.mark.parametrize("encoding", [None, "gzip", "zstd"])
def test_the_limit_counts_decoded_bytes_to_the_byte(encoding: str | None) -> None:
    packed = PACKED[encoding] if encoding else TEXT
    assert undone(packed, encoding, limit=len(TEXT)) == TEXT
    with pytest.raises(TooLarge) as caught:
        undone(packed, encoding, limit=len(TEXT) - 1)
    assert caught.value.code == "corpus_too_large"


def test_one_step_gives_little_however_much_is_packed() -> None:
    bomb = gzip.compress(bytes(1 << 24))
    steps = [len(piece) for piece in decoded([bomb], "gzip", max_decoded_bytes=MANY)]
    assert max(steps) <= 64 * 1024
    assert sum(steps) == 1 << 24
    bomb = zstandard.compress(bytes(1 << 26))
    steps = [len(piece) for piece in decoded([bomb], "zstd", max_decoded_bytes=MANY)]
    assert max(steps) <= 8 << 20
    assert sum(steps) == 1 << 26


def test_output_held_back_by_a_full_step_is_not_lost() -> None:
    # Exactly one step of output, then nothing more to read: the decoder must still return the rest.
    for size in (65_535, 65_536, 65_537, 131_072):
        packer = zlib.compressobj(wbits=31)
        packed = packer.compress(b"x" * size) + packer.flush()
        assert undone(packed, "gzip", len(packed)) == b"x" * size
