"""Files that are no corpora, case by case: what is wrong, where and why, and nothing stored."""

import gzip
from typing import Any

import httpx
import pytest
import zstandard

from tests.app import samples
from tests.app.servers import assert_problem

pytestmark = pytest.mark.usefixtures("unchanged")

GOOD = samples.TEXT
spec = samples.spec


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (b"a X L\nb L\nc X L\n", 2, "expected 3 columns as in line 1, found 2"),
        (b"a X L\n\nb Y Z L\n", 3, "expected 3 columns as in line 1, found 4"),
        (b"a X L\n\xff\xfe X L\n", 2, "not UTF-8: byte 0xFF at byte 1"),
        (b"a X L\nb\x00 X L\n", 2, "control byte 0x00 at byte 2"),
        (b"only\none\ncolumn\n", 1, "a labelled corpus needs at least 2"),
        (b"a X L\n" + b"x" * 2000 + b" X L\n", 2, "longer than 1000 bytes"),
    ],
)
def test_a_faulty_line_is_named(http: httpx.Client, text: bytes, line: int, reason: str) -> None:
    assert_problem(http.post("/corpora", content=text), 422, "invalid_corpus", line=line, reason=reason)


def test_a_hundred_faults_are_named_and_no_more(http: httpx.Client) -> None:
    text = b"a X L\n" + b"ragged L\n" * 500
    problem = assert_problem(http.post("/corpora", content=text), 422, "invalid_corpus")
    assert [place["line"] for place in problem["errors"]] == list(range(2, 102))


@pytest.mark.parametrize("text", [b"", b"\n\n \n\t\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(http: httpx.Client, text: bytes) -> None:
    assert_problem(http.post("/corpora", content=text), 422, "empty_corpus", line=1, reason="no token")


@pytest.mark.parametrize(
    ("encoding", "body", "reason"),
    [
        ("gzip", b"this is not gzip", "incorrect header check"),
        ("gzip", gzip.compress(GOOD, mtime=0)[:-9], "the data is truncated"),
        ("gzip", gzip.compress(GOOD, mtime=0)[:-8] + b"\0\0\0\0\0\0\0\0", "incorrect data check"),
        ("gzip", b"", "the data is truncated"),
        ("zstd", b"this is not zstd", "Unknown frame descriptor"),
        ("zstd", zstandard.compress(GOOD)[:-3], "the data is truncated"),
    ],
)
def test_broken_compression_is_refused(http: httpx.Client, encoding: str, body: bytes, reason: str) -> None:
    response = http.post("/corpora", content=body, headers={"Content-Encoding": encoding})
    assert_problem(response, 422, "corrupt_encoding", reason=reason)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_bomb_meets_the_limit_of_decoded_bytes(http: httpx.Client, compress: Any) -> None:
    body = compress(b"\n" * 50_000_000)
    assert len(body) < 100_000
    encoding = "gzip" if compress is gzip.compress else "zstd"
    response = http.post("/corpora", content=body, headers={"Content-Encoding": encoding})
    assert_problem(response, 413, "corpus_too_large")


def test_an_unknown_encoding_is_refused(http: httpx.Client) -> None:
    response = http.post("/corpora", content=GOOD, headers={"Content-Encoding": "br"})
    assert_problem(response, 415, "unsupported_encoding")


def test_an_unknown_format_is_refused(http: httpx.Client) -> None:
    response = http.post("/corpora", params={"format": "word-perfect"}, content=GOOD)
    assert_problem(response, 422, "unknown_format", parameter="format", reason="Use one of: conll")


def test_a_body_over_the_limit_is_refused_whether_its_length_is_announced_or_not(http: httpx.Client) -> None:
    body = b"a X L\n" * 50_000
    assert_problem(http.post("/corpora", content=body), 413, "body_too_large")
    chunks = (body[i : i + 10_000] for i in range(0, len(body), 10_000))
    assert_problem(http.post("/corpora", content=chunks), 413, "body_too_large")


@pytest.mark.parametrize(
    ("name", "reason"), [("x" * 201, "at most 200"), ("a\nb", "match pattern"), ("", "at least 1")]
)
def test_a_name_that_is_too_long_or_not_plain_is_refused(http: httpx.Client, name: str, reason: str) -> None:
    response = http.post("/corpora", params={"name": name}, content=GOOD)
    assert_problem(response, 422, "invalid_request", parameter="name", reason=reason)


@pytest.mark.parametrize(
    ("query", "reason"),
    [("name=a%00b", "NUL"), ("name=%ED%A0%80", "not UTF-8"), ("name=%FF", "not UTF-8")],
)
def test_a_name_that_is_no_text_is_refused(http: httpx.Client, query: str, reason: str) -> None:
    response = http.post(f"/corpora?{query}", content=GOOD)
    assert_problem(response, 422, "invalid_address", parameter="name", reason=reason)


def test_multipart_without_a_file_or_with_two_is_refused(http: httpx.Client) -> None:
    field = {"name": (None, "news")}
    assert_problem(http.post("/corpora", files=field), 422, "no_file_part")
    response = http.post(
        "/corpora", content=b"--x--\r\n", headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert_problem(response, 422, "no_file_part")
    two = [("file", ("a", GOOD)), ("file", ("b", GOOD))]
    assert_problem(http.post("/corpora", files=two), 422, "too_many_parts")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"--x\r\n"),
        ("multipart/form-data; boundary=x", b"rubbish"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n',
        ),
        ("multipart/form-data; boundary=" + "x" * 500, b"--x\r\n"),
    ],
)
def test_broken_multipart_is_refused(http: httpx.Client, content_type: str, body: bytes) -> None:
    response = http.post("/corpora", content=body, headers={"Content-Type": content_type})
    assert_problem(response, 400, "malformed_multipart")
