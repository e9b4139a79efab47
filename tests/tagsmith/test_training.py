"""Training in one call, and downloads to files."""

from pathlib import Path

import anyio
import httpx
import pytest

from tagsmith import CRF, ApiError, AsyncClient, Client, JobFailed, SequenceTagger
from tests.app import samples
from tests.app.servers import ThreadServer
from tests.tagsmith.text_model import model_file


def test_files_are_uploaded_under_their_stem_and_put_into_the_spec(client: Client, tmp_path: Path) -> None:
    (tmp_path / "refs.conll").write_bytes(samples.TEXT)
    (tmp_path / "held-out.conll").write_bytes(samples.TEXT)
    (tmp_path / "template").write_text(samples.TEMPLATES)
    job = client.train(
        "chunker",
        tmp_path / "refs.conll",
        dev=str(tmp_path / "held-out.conll"),
        templates=tmp_path / "template",
        trainer="sgd",
        features={"cutoff": 2},
        seed=7,
    )
    assert (job.kind, job.model, job.reference) == ("train", "chunker", None)
    assert client.corpus(job.spec["corpus"]).name == "refs"
    assert client.corpus(job.spec["dev"]["corpus"]).name == "held-out"
    assert job.spec["features"]["templates"] == samples.TEMPLATES
    assert job.spec["features"]["cutoff"] == 2
    assert (job.spec["trainer"]["kind"], job.spec["seed"]) == ("sgd", 7)
    assert client.job(job.id) == job
    job.cancel()


def test_the_syntax_of_templates_is_recognised_unless_it_is_given(client: Client, tmp_path: Path) -> None:
    wapiti, path = "*:word=%X[0,0]\n", tmp_path / "template"
    path.write_text(wapiti, encoding="utf-8-sig")
    corpus = client.upload(samples.TEXT).id
    for templates in (path, str(path), wapiti):
        job = client.train("chunker", corpus, templates=templates)
        assert (job.spec["features"]["templates"], job.spec["features"]["syntax"]) == (wapiti, "wapiti")
        job.cancel()
    with pytest.raises(ApiError, match="Wapiti"):
        client.train("chunker", corpus, templates=wapiti, features={"syntax": "crf++"})


def test_a_corpus_that_is_there_is_used_as_it_is(client: Client) -> None:
    corpus = client.upload(samples.TEXT)
    trainer = {"kind": "sgd", "passes": 3}
    job = client.train("chunker", corpus.id, dev=0.5, preset="chunking", trainer=trainer)
    assert (job.spec["corpus"], job.spec["dev"]) == (corpus.id, {"fraction": 0.5})
    assert job.spec["features"]["preset"] == "chunking"
    assert job.spec["trainer"]["passes"] == 3
    job.cancel()


def test_a_key_makes_the_uploads_and_the_job_happen_once(client: Client, tmp_path: Path) -> None:
    (tmp_path / "once.conll").write_bytes(samples.TEXT)
    file = tmp_path / "once.conll"
    first, second = (client.train("chunker", file, dev=file, idempotency_key="one-run") for _ in range(2))
    assert first.id == second.id
    assert [corpus.name for corpus in client.corpora()].count("once") == 2
    first.cancel()


def test_a_spec_is_posted_as_it_is(client: Client) -> None:
    corpus = client.upload(samples.TEXT)
    job = client.train(samples.spec(corpus.id, seed=9))
    assert job.spec["seed"] == 9
    job.cancel()


def test_what_cannot_be_trained_on_is_reported_before_anything_is_sent(client: Client) -> None:
    before = len(list(client.corpora()))
    with pytest.raises(FileNotFoundError, match=r"no/such\.conll"):
        client.train("chunker", "no/such.conll")
    with pytest.raises(TypeError, match="Give a corpus to train on"):
        client.train("chunker")
    with pytest.raises(FileNotFoundError):
        client.train("chunker", "crp_x", templates=Path("no/such/template"))
    assert len(list(client.corpora())) == before


def test_a_job_that_does_not_succeed_raises_unless_told_otherwise(client: Client) -> None:
    job = client.train("chunker", client.upload(samples.TEXT).id)
    assert job.state == "queued"
    assert job.cancel() is job
    with pytest.raises(JobFailed, match=f"The train job {job.id} was cancelled"):
        job.wait()
    assert job.wait(check=False).state == "cancelled"
    assert job.watch(check=False).result is None
    assert repr(job) == f"<train job {job.id} of chunker: cancelled>"
    assert [event.type for event in job.follow()] == ["state", "state"]


def test_the_asynchronous_handle_does_the_same(server: ThreadServer, tmp_path: Path) -> None:
    (tmp_path / "refs.conll").write_bytes(samples.TEXT)

    async def main() -> None:
        async with AsyncClient(server.url) as client:
            job = await client.train("chunker", tmp_path / "refs.conll", dev=tmp_path / "refs.conll")
            assert (await client.corpus(job.spec["dev"]["corpus"])).name == "refs"
            await job.cancel()
            with pytest.raises(JobFailed):
                await job.wait()
            with pytest.raises(JobFailed):
                await job.watch()
            assert (await job.refresh()).state == "cancelled"
            path = await client.save_content(tmp_path / "copy", job.spec["corpus"])
            assert path.read_bytes() == samples.TEXT

    anyio.run(main)


def test_downloads_are_written_to_files(client: Client, tmp_path: Path) -> None:
    corpus = client.upload(samples.TEXT)
    assert client.save_content(str(tmp_path / "corpus"), corpus.id) == tmp_path / "corpus"
    assert (tmp_path / "corpus").read_bytes() == samples.TEXT
    file = model_file(tmp_path / "model")
    client.import_model("saved", file)
    saved = client.save_artifact(tmp_path / "copy", "saved", 1)
    assert saved.read_bytes() == client.artifact("saved", 1) == file.read_bytes()
    assert saved.stat().st_mode == file.stat().st_mode


def test_a_download_that_fails_leaves_no_file(client: Client, tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="corpus_not_found"):
        client.save_content(tmp_path / "corpus", "crp_00000000000000000000000000")

    class Broken(httpx.SyncByteStream):
        def __iter__(self):  # type: ignore[no-untyped-def]
            yield b"half"
            raise httpx.ReadError("reset")

    (tmp_path / "old").write_bytes(b"old")
    with Client("http://server", retries=0) as broken:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Broken()))
        broken._http = httpx.Client(base_url="http://server", transport=transport)
        with pytest.raises(httpx.ReadError):
            broken.save_content(tmp_path / "old", "crp_x")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_bytes() == b"old"


def test_a_fitted_estimator_becomes_a_version_that_tags(client: Client, server: ThreadServer) -> None:
    server.ready()
    X = [[{"word": "Ada", "capital": True}, {"word": "wrote", "length": 5}]] * 3
    crf = CRF(c2=0.1, max_iterations=20).fit(X, [["PER", "O"]] * 3)
    version = crf.push(client, "pushed")
    assert (version.model, version.version) == ("pushed", 1)
    assert client.tag("pushed", X[:1]).tags == [["PER", "O"]]
    assert client.artifact("pushed", 1) == crf._model_bytes()
    assert SequenceTagger(passes=3).fit(X, [["PER", "O"]] * 3).push(client, "pushed").version == 2


def test_a_missing_corpus_is_no_file_either(client: Client, tmp_path: Path) -> None:
    with pytest.raises(
        ApiError, match=r"There is no file of this name either\.\n.*There is no corpus god\.conll"
    ):
        client.train("chunker", "god.conll")
    with pytest.raises(TypeError, match="The spec names the corpus"):
        client.train({"model": "chunker", "corpus": "a"}, "people")


def test_one_model_is_evaluated_on_a_file(client: Client, tmp_path: Path) -> None:
    client.import_model("scored", model_file(tmp_path / "model"))
    (tmp_path / "test.conll").write_text("Ada B-PER\nsaw O\n\n")
    job = client.evaluate("scored", tmp_path / "test.conll")
    assert job.spec["models"] == ["scored"] or job.spec["models"] == ["scored:1"]
    assert client.corpus(job.spec["corpus"]).name == "test"
    job.cancel()


def test_values_of_other_types_are_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="`text` is one string"):
        client.tag_text("people", ["a", "b"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="A line is a text, a list of tokens or an object, not int"):
        list(client.tag_lines("people", [5]))  # type: ignore[list-item]


def test_options_of_formats_are_written_as_the_query_has_them(client: Client) -> None:
    corpus = client.upload(b"a X L\nb X L\n", options={"columns": [0], "tokenizer": {"pattern": "[a-z]+"}})
    assert corpus.columns == ["0"]
