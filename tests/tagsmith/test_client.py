"""The typed client against a real server."""

import gzip
from pathlib import Path

import httpx
import pytest

from tagsmith.client import ApiError, Client, JobFailed, following
from tests.app import samples
from tests.app.servers import ThreadServer


def test_files_are_uploaded_as_they_are_compressed_or_not(client: Client, tmp_path: Path) -> None:
    plain, packed = tmp_path / "train.conll", tmp_path / "train.conll.gz"
    plain.write_bytes(samples.TEXT)
    packed.write_bytes(gzip.compress(samples.TEXT))
    first, second = client.upload(plain), client.upload(str(packed), name="packed")
    assert (first.name, second.name) == ("train", "packed")
    assert first.sha256 == second.sha256
    assert client.content(second.id) == samples.TEXT
    assert client.corpus(first.id) == first
    assert [corpus.id for corpus in client.corpora()][:2] == [second.id, first.id]
    client.delete_corpus(first.id)


def test_lexicons_are_uploaded_listed_read_and_removed(client: Client, tmp_path: Path) -> None:
    text = b"LOC\tNew York\nPER\tMary\n"
    packed = tmp_path / "names.tsv.gz"
    packed.write_bytes(gzip.compress(text))
    first = client.upload_lexicon(packed, kind="typed")
    assert (first.name, first.kind, first.entries, first.classes) == ("names", "typed", 2, 2)
    assert client.upload_lexicon(text, name="again", kind="typed") == first
    other = client.upload_lexicon(b"New York\n", name="places")
    assert (other.name, other.kind) == ("places", "words")
    assert client.lexicon(first.id) == first
    assert client.lexicon_content(first.id) == text
    assert [lexicon.id for lexicon in client.lexicons()][:2] == [other.id, first.id]
    client.delete_lexicon(first.id)
    with pytest.raises(ApiError) as caught:
        client.lexicon(first.id)
    assert (caught.value.status, caught.value.code) == (404, "lexicon_not_found")
    with pytest.raises(ApiError) as caught:
        client.upload_lexicon(b"New York\n", kind="typed")
    assert caught.value.errors == [
        {"line": 1, "detail": "The line has no tab. Write a type, a tab and an entry."}
    ]


def test_a_problem_becomes_an_error_that_carries_it(client: Client) -> None:
    with pytest.raises(ApiError) as caught:
        client.upload(b"a X L\nb L\n")
    error = caught.value
    assert (error.status, error.code) == (422, "invalid_corpus")
    assert error.errors == [{"line": 2, "detail": "expected 3 columns as in line 1, found 2"}]
    assert error.request_id
    assert "line 2: expected 3 columns" in str(error)


def test_an_unknown_job_cannot_be_followed(client: Client) -> None:
    with pytest.raises(ApiError) as caught:
        list(client.follow("job_x"))
    assert caught.value.code == "job_not_found"


def test_a_finished_job_is_followed_to_its_end_and_not_beyond(client: Client) -> None:
    job = client.train(samples.spec(client.upload(samples.TEXT).id))
    client.cancel(job.id)
    assert [event.data["state"] for event in client.follow(job.id)] == ["queued", "cancelled"]
    assert list(client.follow(job.id, after=2)) == []
    assert client.wait(job.id, check=False).state == "cancelled"
    with pytest.raises(JobFailed, match="was cancelled") as caught:
        client.wait(job.id)
    assert caught.value.job.id == job.id


def test_ready_tells_a_server_from_none(server: ThreadServer, client: Client) -> None:
    server.ready()
    assert client.ready()
    with Client("http://127.0.0.1:1") as nobody:
        assert not nobody.ready()
    assert client.server_version().name == "tagsmith"


def test_a_server_that_stays_away_ends_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PATIENCE_S", 0.2)
    monkeypatch.setattr(following, "RETRY_S", 0.05)
    with Client("http://127.0.0.1:1") as nobody, pytest.raises(httpx.TransportError):
        list(nobody.follow("job_x"))
