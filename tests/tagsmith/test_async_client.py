"""The asynchronous client against a real server: the same calls, awaited."""

import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from tagsmith import ApiError, AsyncClient
from tests.app import samples
from tests.app.servers import ThreadServer
from tests.tagsmith.text_model import TEXT, model_file


def run(server: ThreadServer, work: Callable[[AsyncClient], Awaitable[None]]) -> None:
    """Run `work` with a client of the server."""

    async def main() -> None:
        async with AsyncClient(server.url) as client:
            await work(client)

    server.ready()
    anyio.run(main)


def test_corpora_are_uploaded_listed_and_deleted(server: ThreadServer, tmp_path: Path) -> None:
    packed = tmp_path / "train.conll.gz"
    packed.write_bytes(gzip.compress(samples.TEXT))

    async def work(client: AsyncClient) -> None:
        made = await client.upload(packed)
        assert await client.corpus(made.id) == made
        assert made.id in [corpus.id async for corpus in client.corpora()]
        assert await client.content(made.id) == samples.TEXT
        assert (await client.report(made.id)).label_counts == {"B-NP": 2, "B-VP": 2, "O": 1}
        await client.delete_corpus(made.id)
        with pytest.raises(ApiError) as caught:
            await client.corpus(made.id)
        assert caught.value.code == "corpus_not_found"

    run(server, work)


def test_a_job_is_followed_to_its_end(server: ThreadServer) -> None:
    async def work(client: AsyncClient) -> None:
        job = await client.train(samples.spec((await client.upload(samples.TEXT)).id), idempotency_key="once")
        again = await client.train(samples.spec(job.spec["corpus"]), idempotency_key="once")
        assert again.id == job.id
        await client.cancel(job.id)
        states = [event.data["state"] async for event in client.follow(job.id)]
        assert states == ["queued", "cancelled"]
        assert [event.seq for event in await client.events(job.id)] == [1, 2]
        assert (await client.wait(job.id, check=False)).done
        assert await client.ready()

    run(server, work)


def test_text_and_lines_are_tagged(server: ThreadServer, tmp_path: Path) -> None:
    async def work(client: AsyncClient) -> None:
        await client.import_model("people", model_file(tmp_path / "model"))
        people = await client.model("people")
        spans = (await people.tag_text(TEXT)).spans
        assert [span.text for span in spans] == ["Ada Lovelace", "Charles Babbage", "London"]
        assert (await client.tag("people", text="Ada")).tags == [["B-PER"]]
        lines = [line async for line in client.tag_lines("people", ["Ada", ["London"]])]
        assert [line.tags for line in lines] == [["B-PER"], ["B-LOC"]]
        assert [feature async for feature in client.features("people", 1, label="B-LOC", top=5)]
        assert (await client.weights("people", 1, bins=3)).bounds
        assert [alias.alias for alias in await client.aliases("people")] == []

    run(server, work)


def test_a_server_that_is_away_is_not_ready() -> None:
    async def main() -> None:
        async with AsyncClient("http://127.0.0.1:1") as nobody:
            assert not await nobody.ready()

    anyio.run(main)
