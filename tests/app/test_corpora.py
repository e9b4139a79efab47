"""Corpora over HTTP."""

import gzip
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import zstandard

from tagsmith.app.reading import uploads
from tagsmith.app.reading.decoding import Decoding
from tagsmith.core.store import corpora
from tests.app.servers import DEADLINE_S, assert_problem

TEXT = b"Rockwell NNP B-NP\nsaid VBD B-VP\n\nIt PRP B-NP\nrose VBD B-VP\n. . O\n"


def upload(http: httpx.Client, content: bytes = TEXT, **params: str) -> httpx.Response:
    return http.post("/corpora", params=params, content=content)


@pytest.mark.parametrize(("where", "step"), [(uploads, "_write"), (Decoding, "read"), (corpora, "insert")])
def test_other_requests_are_answered_while_an_upload_is_read_and_stored(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, where: object, step: str
) -> None:
    entered, answered = threading.Event(), threading.Event()
    work = getattr(where, step)

    def held(*given: object) -> object:
        entered.set()
        assert answered.wait(DEADLINE_S), "no other request was answered meanwhile"
        return work(*given)

    monkeypatch.setattr(where, step, held)
    with ThreadPoolExecutor(1) as pool:
        stored = pool.submit(upload, http)
        assert entered.wait(DEADLINE_S)
        assert http.get("/livez").status_code == 200
        answered.set()
        assert stored.result().status_code == 201


@pytest.mark.parametrize("encoding", [None, "gzip", "zstd"])
def test_an_upload_is_answered_with_what_was_counted(http: httpx.Client, encoding: str | None) -> None:
    body = {None: TEXT, "gzip": gzip.compress(TEXT), "zstd": zstandard.compress(TEXT)}[encoding]
    headers = {"Content-Encoding": encoding} if encoding else {}
    response = http.post(
        "/corpora", params={"name": "news", "format": "conll"}, content=body, headers=headers
    )
    assert response.status_code == 201, response.text
    corpus = response.json()
    assert corpus["id"].startswith("crp_")
    assert response.headers["location"] == f"/corpora/{corpus['id']}"
    assert corpus["created_at"].endswith("Z")
    assert {key: corpus[key] for key in corpus if key not in ("id", "created_at")} == {
        "name": "news",
        "number": corpus["number"],
        "format": "conll",
        "options": {
            "labels": None,
            "repair": False,
            "labelled": True,
            "partial": False,
            "names": [],
            "columns": [],
            "separator": "blank",
        },
        "sentences": 2,
        "tokens": 5,
        "columns": ["0", "1"],
        "labels": ["B-NP", "B-VP", "O"],
        "trees": False,
        "sha256": hashlib.sha256(TEXT).hexdigest(),
        "size_bytes": len(TEXT),
    }
    assert http.get(f"/corpora/{corpus['id']}").json() == corpus


def test_options_of_the_format_are_taken_from_the_query_and_kept(http: httpx.Client) -> None:
    response = upload(http, "上海  市\n".encode(), format="segmented", coding="2")
    assert response.status_code == 201, response.text
    corpus = response.json()
    assert corpus["options"] == {
        "labels": None,
        "repair": False,
        "labelled": True,
        "partial": False,
        "coding": 2,
        "tags": "none",
    }
    assert corpus["labels"] == ["B", "I"]
    assert http.get(f"/corpora/{corpus['id']}").json() == corpus


def test_options_that_the_format_does_not_have_are_refused(http: httpx.Client) -> None:
    response = upload(http, format="conll", coding="2")
    assert_problem(response, 422, "invalid_options", parameter="coding", reason="not an option of conll")
    response = upload(http, format="segmented", coding="3")
    assert_problem(response, 422, "invalid_options", parameter="coding", reason="should be 2, 4 or 6")


@pytest.mark.parametrize(
    ("filename", "body"),
    [
        ("train.conll", TEXT),
        ("train.conll.gz", gzip.compress(TEXT, mtime=0)),
        ("train.zst", zstandard.compress(TEXT)),
    ],
)
def test_a_multipart_upload_takes_one_file_and_its_name(
    http: httpx.Client, filename: str, body: bytes
) -> None:
    response = http.post("/corpora", files={"file": (filename, body, "application/octet-stream")})
    assert response.status_code == 201, response.text
    assert response.json()["name"] == filename
    assert response.json()["tokens"] == 5


def test_a_body_in_many_small_chunks_gives_the_same_corpus(http: httpx.Client) -> None:
    response = http.post("/corpora", content=(TEXT[i : i + 1] for i in range(len(TEXT))))
    assert response.status_code == 201, response.text
    assert response.json()["sha256"] == hashlib.sha256(TEXT).hexdigest()


def test_an_upload_without_a_name_gets_one(http: httpx.Client) -> None:
    assert upload(http).json()["name"] == "unnamed"


def test_content_gives_back_the_very_bytes_decompressed(http: httpx.Client) -> None:
    text = "".join(f"wörd{i} X{i % 7} L{i % 3}\n\n" for i in range(30_000)).encode()
    body = gzip.compress(text)
    made = http.post("/corpora", content=body, headers={"Content-Encoding": "gzip"}).json()
    response = http.get(f"/corpora/{made['id']}/content")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["content-length"] == str(len(text))
    assert response.content == text


def test_the_report_counts_labels_lengths_faults_and_duplicates(http: httpx.Client) -> None:
    text = b"a X B-NP\nb Y I-VP\n\nc X O\n\nc X O\n"
    made = upload(http, text).json()
    report = http.get(f"/corpora/{made['id']}/report").json()
    assert report["label_counts"] == {"B-NP": 1, "I-VP": 1, "O": 2}
    assert report["length_histogram"] == {"1": 2, "2": 1}
    assert report["duplicate_sentences"] == 1
    assert report["bio_fault_count"] == 1


def test_the_list_is_newest_first_and_pages_without_gap_or_repeat(http: httpx.Client) -> None:
    made = [upload(http, name=f"page {i}").json()["id"] for i in range(6)]
    seen: list[str] = []
    cursor = None
    while len(seen) < 6:
        page = http.get("/corpora", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        assert len(page["data"]) == 2
        seen += [corpus["id"] for corpus in page["data"]]
        cursor = page["next_cursor"]
    assert seen[:6] == made[::-1]
    assert http.get("/corpora", params={"limit": 500}).json()["next_cursor"] is None


def test_a_deleted_corpus_is_gone(http: httpx.Client) -> None:
    corpus_id = upload(http).json()["id"]
    response = http.delete(f"/corpora/{corpus_id}")
    assert (response.status_code, response.content) == (204, b"")
    for path in ("", "/report", "/content"):
        assert_problem(http.get(f"/corpora/{corpus_id}{path}"), 404, "corpus_not_found")
    assert_problem(http.delete(f"/corpora/{corpus_id}"), 404, "corpus_not_found")
