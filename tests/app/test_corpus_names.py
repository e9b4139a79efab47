"""Names of corpora over HTTP: numbers, references, texts that are looked at before and after they are stored."""

import dataclasses
import lzma
from collections.abc import Callable

import httpx
import pytest

from tagsmith.client import Client
from tagsmith.core.registry import aliases, models
from tagsmith.core.store.engine import Database
from tagsmith.wire import CorpusInfo
from tests.app import samples
from tests.app.keys import Callers
from tests.app.servers import ThreadServer, assert_problem
from tests.core.store.samples import new_version
from tests.services import wait_until

Uploaded = Callable[..., CorpusInfo]


@pytest.fixture
def upload(client: Client) -> Uploaded:
    return lambda name, text=samples.TEXT, **more: client.upload(text, name, **more)


def test_a_name_stands_for_its_newest_upload_wherever_an_id_does(
    http: httpx.Client, client: Client, upload: Uploaded
) -> None:
    first, second = upload("refs"), upload("refs", samples.TEXT + samples.TEXT)
    assert (first.number, second.number, first.format) == (1, 2, "conll")
    assert [each.id for each in client.corpora(name="refs")] == [second.id, first.id]
    assert list(client.corpora(name="ref")) == []
    assert client.corpus("refs").id == client.corpus("refs@2").id == second.id
    assert client.content("refs:1") == samples.TEXT
    assert client.report("refs").sentences == second.sentences
    preview = client.preview({"templates": samples.TEMPLATES}, [["It", "PRP"]], "refs")
    assert preview.counts is not None
    assert_problem(http.get("/corpora/refs:7"), 404, "corpus_not_found")


def test_a_job_is_pinned_to_the_upload_that_was_the_newest_when_it_was_posted(
    http: httpx.Client, client: Client, upload: Uploaded
) -> None:
    first, dev = upload("pinned"), upload("pinned-dev")
    spec = samples.spec("pinned", dev={"corpus": "pinned-dev:1"})
    job = client.submit(spec)
    assert (job.spec["corpus"], job.spec["dev"]) == (first.id, {"corpus": dev.id})
    for name in ("pinned", "pinned-dev"):
        assert_problem(http.delete(f"/corpora/{name}"), 409, "corpus_in_use")
    upload("pinned")
    assert client.job(job.id[-6:]).spec["corpus"] == first.id
    client.cancel(job.id[-6:])
    again = client.retry(job.id[-6:])
    assert (again.spec["corpus"], again.retry_of) == (first.id, job.id)
    client.cancel(again.id)
    for changes, pointer in (
        ({"corpus": "pined"}, "/corpus"),
        ({"dev": {"corpus": "pinned:9"}}, "/dev/corpus"),
    ):
        response = http.post("/jobs", json={**spec, **changes})
        assert_problem(response, 422, "corpus_not_found", pointer=pointer)


def test_a_policy_keeps_the_id_of_the_corpus_that_it_was_given_by_name(
    client: Client, database: Database, upload: Uploaded
) -> None:
    corpus = upload("guarding")
    with database.write() as conn:
        models.publish(conn, "guarded", new_version(), [b"model"])
    made = client.set_policy("guarded", {"corpus": "guarding", "minimum": 50})
    assert made.promotion is not None
    assert made.promotion.corpus == corpus.id


def test_what_a_served_version_was_trained_on_is_deleted_only_by_force(
    http: httpx.Client, client: Client, database: Database, upload: Uploaded
) -> None:
    older, newer = upload("basis"), upload("basis")
    with database.write() as conn:
        new = dataclasses.replace(new_version(), corpus=newer.id)
        models.publish(conn, "founded", new, [b"model"])
        aliases.move(conn, "founded", "champion", 1)
    problem = assert_problem(http.delete("/corpora/basis"), 409, "corpus_in_use")
    assert "Version 1 of model founded, which is served as champion" in problem["detail"]
    client.delete_corpus("basis", force=True)
    assert client.corpus("basis").id == older.id
    entry = next(iter(client.audit()))
    assert (entry.path, entry.note) == ("/corpora/basis", f"forced, deleted {newer.id} (basis:2)")
    version = client.version("founded", 1)
    assert (version.corpus, version.corpus_name, version.corpus_number) == (newer.id, "basis", 2)


@pytest.mark.usefixtures("unchanged")
def test_a_text_is_inspected_and_nothing_is_stored(http: httpx.Client, client: Client) -> None:
    found = client.inspect(lzma.compress(samples.TEXT), options={"names": "word,pos", "columns": "word"})
    assert (found.format, found.columns, found.sentences, found.tokens) == ("conll", ["word"], 2, 5)
    assert found.options["columns"] == ["word"]
    first = found.sample[0]
    assert (first.tokens, first.labels) == (["Rockwell", "said"], ["B-NP", "B-VP"])
    assert [(span.type, span.start, span.stop) for span in first.spans] == [("NP", 0, 1), ("VP", 1, 2)]
    assert found.report.label_counts == {"B-NP": 2, "B-VP": 2, "O": 1}
    assert found.warnings == []
    for text, said in (
        (b"a O\n", "one label only"),
        (b"a I-X\n\nb B-Y\nc I-X\n", "repair=true"),
        (b"".join(b"w%d l%d\n" % (i, i) for i in range(600)), "last column?"),
    ):
        assert any(said in warning for warning in client.inspect(text).warnings), said
    assert_problem(http.post("/corpora/inspect", content=b"a b c\nd e\n"), 422, "invalid_corpus", line=2)


def test_sentences_are_paged_and_chosen_by_label_type_and_fault(client: Client, upload: Uploaded) -> None:
    text = b"a B-X\nb I-X\n\nc O\n\nd I-Y\n\ne B-X\n\nf B-Z\n"
    upload("read", text)
    everything = list(client.sentences("read", limit=2))
    assert [each.index for each in everything] == [0, 1, 2, 3, 4]
    assert (everything[0].tokens, everything[0].columns) == (["a", "b"], [["a"], ["b"]])
    assert [(span.type, span.start, span.stop) for span in everything[0].spans] == [("X", 0, 2)]
    assert [each.index for each in client.sentences("read", label="X", limit=1)] == [0, 3]
    assert [each.index for each in client.sentences("read", label="I-X")] == [0]
    assert [each.index for each in client.sentences("read", faulty=True)] == [2]
    assert [each.index for each in client.sentences("read", offset=3)] == [3, 4]
    upload("endless", b"w O\n" * 1500)
    (endless,) = client.sentences("endless")
    assert (endless.length, len(endless.tokens), len(endless.labels)) == (1500, 1000, 1000)
    assert list(client.sentences("read", offset=99)) == list(client.sentences("read", label="none")) == []


def test_a_model_is_deleted_with_all_versions_and_served_no_more(
    http: httpx.Client, client: Client, database: Database
) -> None:
    with database.write() as conn:
        models.publish(conn, "leaving", new_version(), [b"model"])
        aliases.move(conn, "leaving", "champion", 1)
    assert_problem(http.delete("/models/leaving"), 409, "model_in_use")
    client.delete_model("leaving", force=True)
    for path in ("/models/leaving", "/models/leaving/versions", "/models/leaving/aliases/champion"):
        assert_problem(http.get(path), 404, "model_not_found")
    tag = http.post("/tag", json={"model": "leaving", "sentences": [["a"]]})
    assert_problem(tag, 404, "model_not_found")
    assert_problem(http.delete("/models/leaving"), 404, "model_not_found")


def test_a_job_is_deleted_once_it_has_ended(http: httpx.Client, client: Client, upload: Uploaded) -> None:
    upload("short")
    job = client.submit(samples.spec("short"))
    assert_problem(http.delete(f"/jobs/{job.id}"), 409, "illegal_transition")
    client.cancel(job.id)
    client.delete_job(job.id[-6:])
    for path in (f"/jobs/{job.id}", f"/jobs/{job.id[-6:]}", f"/jobs/{job.id}/events"):
        assert_problem(http.get(path), 404, "job_not_found")
    stream = http.get(f"/jobs/{job.id}/events", headers={"Accept": "text/event-stream"})
    assert_problem(stream, 404, "job_not_found")


@pytest.mark.parametrize(
    ("method", "path", "parameter", "guess"),
    [
        ("GET", "/corpora?limt=3", "limt", "limit"),
        ("POST", "/corpora?fromat=conll", "fromat", "format"),
        ("POST", "/corpora/inspect?colums=0", "colums", "columns"),
        ("GET", "/jobs?sate=failed", "sate", "state"),
        ("DELETE", "/models/nobody?Force=true", "Force", "force"),
        ("POST", "/tag?model=x", "model", None),
        ("GET", "/version?x", "x", None),
    ],
)
def test_an_unknown_query_parameter_is_refused_with_the_likely_one(
    http: httpx.Client, method: str, path: str, parameter: str, guess: str | None
) -> None:
    problem = assert_problem(http.request(method, path), 422, "invalid_request", parameter=parameter)
    (error,) = problem["errors"]
    assert (f"did you mean `{guess}`?" in error["detail"]) == (guess is not None)


def test_pages_take_any_query_and_unknown_paths_stay_unknown(http: httpx.Client) -> None:
    assert http.get("/docs?theme=dark").status_code == 200
    assert_problem(http.get("/nowhere?x=1"), 404, "route_not_found")


def test_the_calls_need_the_scopes_of_their_like(
    http: httpx.Client, database: Database, server: ThreadServer
) -> None:
    # The last test of the module: from now on keys are in force.
    callers = Callers(database, server.url)
    reader, trainer = callers.client("read"), callers.client("train")
    wait_until(lambda: http.get("/corpora").status_code == 401, "keys to be in force", 5)
    assert reader.get("/corpora/x/sentences").status_code == 404
    assert reader.post("/corpora/inspect", content=b"a O\n").status_code == 403
    assert trainer.post("/corpora/inspect", content=b"a O\n").status_code == 200
    assert reader.delete("/jobs/job_x").status_code == 403
    assert trainer.delete("/jobs/job_x").status_code == 404
    assert trainer.delete("/models/nobody").status_code == 403
    callers.close()
