"""Parsing with both clients."""

import asyncio

import pytest

from tagsmith import ApiError, AsyncClient, Client
from tagsmith.client import ParsedSentences
from tests import parsers
from tests.app.servers import ThreadServer
from tests.tagsmith.text_model import model_file

SENTENCES = [["the", "offer", "appeared", "."], ["it", "appeared"]]
TEXT = "the offer appeared. The order appeared."


@pytest.fixture(scope="module", autouse=True)
def published(client: Client, server: ThreadServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    server.ready()
    folder = tmp_path_factory.mktemp("models")
    (folder / "words").write_bytes(parsers.model_file("form"))
    (folder / "bare").write_bytes(parsers.model_file("form", relations=False))
    (folder / "columns").write_bytes(parsers.model_file())
    for name in ("words", "bare", "columns"):
        client.import_model(name, folder / name)
    client.import_model("people", model_file(folder / "people"))


def test_sentences_are_parsed(client: Client) -> None:
    found = client.parse("words", SENTENCES, marginals=True)
    assert (found.model, found.version, len(found), found.calibrated) == ("words", 1, 2, True)
    first, second = found
    assert (first.tokens, second.tokens) == (SENTENCES[0], SENTENCES[1])
    assert (len(first.heads), len(first.relations or ()), len(first.marginals or ())) == (4, 4, 4)
    assert first.heads[2] == 0
    assert client.parse("words", SENTENCES).sentences[0].marginals is None
    assert client.parse("bare", SENTENCES).sentences[0].relations is None
    rows = [[["it", "it", "PRON", "_"], ["appeared", "appear", "VERB", "_"]]]
    (parsed,) = client.parse("columns", rows)
    assert (parsed.tokens, parsed.heads) == (rows[0], [2, 0])


def test_each_sentence_of_a_text_has_a_tree_of_its_own(client: Client) -> None:
    found = client.parse("words", text=[TEXT, "", "it appeared."])
    assert [each.tokens for each in found] == [
        ["the", "offer", "appeared", "."],
        ["The", "order", "appeared", "."],
        ["it", "appeared", "."],
    ]
    apart = client.parse("words", [each.tokens for each in found])
    assert [(each.heads, each.relations) for each in found] == [
        (each.heads, each.relations) for each in apart
    ]


def test_a_model_parses_with_a_version(client: Client) -> None:
    model = client.model("words")
    assert model.parse(SENTENCES) == client.parse("words", SENTENCES)
    assert model.parse(text=TEXT, version=1, marginals=True) == client.parse(
        "words", text=TEXT, marginals=True
    )
    with pytest.raises(ApiError, match="version_not_found"):
        model.parse(SENTENCES, version=9)


def test_the_client_that_does_not_block_finds_the_same(client: Client, server: ThreadServer) -> None:
    async def parsed() -> tuple[ParsedSentences, ParsedSentences]:
        async with AsyncClient(server.url) as other:
            model = await other.model("words")
            return await other.parse("words", text=TEXT), await model.parse(SENTENCES)

    assert asyncio.run(parsed()) == (client.parse("words", text=TEXT), client.parse("words", SENTENCES))


def test_what_cannot_be_parsed_is_an_error(client: Client) -> None:
    with pytest.raises(ValueError, match="not both"):
        client.parse("words", SENTENCES, text=TEXT)
    with pytest.raises(ValueError, match="people:1 gives tags, not trees"):
        client.parse("people", SENTENCES)
    with pytest.raises(ApiError, match="text_not_supported"):
        client.parse("columns", text=TEXT)


def test_explanations_have_types(client: Client) -> None:
    (arc,) = client.tag("words", SENTENCES, explain=[[0, 1]]).arcs
    assert (arc.head.head, arc.relation is not None) == (3, True)
    assert arc.head.score == pytest.approx(sum(arc.head.weights), abs=1e-4)
