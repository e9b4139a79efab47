"""Tagging text and lines with the client."""

import httpx
import pytest

from tagsmith import ApiError, Client
from tagsmith.client import lines
from tests.app.servers import ThreadServer
from tests.tagsmith.text_model import TEXT, model_file

SPANS = [("Ada Lovelace", "PER"), ("Charles Babbage", "PER"), ("London", "LOC")]


@pytest.fixture(scope="module", autouse=True)
def people(client: Client, server: ThreadServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    server.ready()
    assert client.import_model("people", model_file(tmp_path_factory.mktemp("model") / "people")).version == 1


def test_a_model_finds_the_spans_of_a_text_by_character(client: Client) -> None:
    model = client.model("people")
    assert (model.name, model.latest, model.version_count, model.aliases) == ("people", 1, 1, {})
    tagged = model.tag_text(TEXT)
    assert (tagged.model, tagged.version, tagged.tokens[:3]) == ("people", 1, ["Ada", "Lovelace", "wrote"])
    assert [(span.text, span.label) for span in tagged.spans] == SPANS
    assert all(TEXT[span.start : span.end] == span.text for span in tagged.spans)
    assert all(0.5 < span.probability <= 1 for span in tagged.spans)
    assert model.tag_text("Ada", version=1).spans == client.tag_text("people:1", "Ada").spans
    assert model.tag_text("so").spans == []
    with pytest.raises(ApiError, match="version_not_found"):
        model.tag_text("Ada", version=9)


def test_the_probability_of_a_span_is_that_of_all_sequences_with_it(client: Client) -> None:
    tagged = client.tag_text("people", TEXT)
    (span, *_) = tagged.spans
    # Three tokens, so that the list has all sequences: four labels to the power of three, up to a tiny rest.
    few = client.tag("people", text="Ada Lovelace wrote", output="spans", nbest=100, marginals=True)
    (best,) = few.nbest
    wanted = [
        probability
        for spans, probability in zip(best.spans, best.probabilities, strict=True)
        if ("PER", 0, 2) in [(each.type, each.start, each.stop) for each in spans]
    ]
    assert few.spans[0][0].probability == pytest.approx(sum(wanted), abs=1e-3)
    assert few.spans[0][0].text == "Ada Lovelace"
    assert (span.text, span.label, span.start, span.end) == ("Ada Lovelace", "PER", 0, 12)
    (marginals,) = client.tag("people", text=TEXT, marginals=True).marginals
    assert 0.5 < span.probability < min(marginals[:2])
    assert tagged.sentences == [(0, 4), (4, 9)]
    assert tagged.calibrated is True


def test_text_is_tagged_with_every_option_of_the_request(client: Client) -> None:
    tagged = client.tag("people", text=[TEXT, "Ada"], output="spans", distributions=True, explain=[[1, 0]])
    assert [(span.type, span.begin, span.end) for span in tagged.spans[0]] == [
        ("PER", 0, 12), ("PER", 23, 38), ("LOC", 42, 48),
    ]  # fmt: skip
    assert tagged.tags == []
    assert tagged.offsets[1] == [(0, 3)]
    assert sum(tagged.distributions[1][0]) == pytest.approx(1, abs=1e-4)
    assert [each.chosen.tag for each in tagged.explain] == ["B-PER"]
    assert client.tag("people", text="Ada", tokenizer="characters").tokens == [["A", "d", "a"]]
    best = client.tag("people", [["Ada"]], nbest=2).nbest[0]
    assert best.tags[0] == ["B-PER"]
    assert best.probabilities[0] > best.probabilities[1]


def test_sentences_or_text_are_needed_and_not_both(client: Client) -> None:
    for given in ({}, {"sentences": [["a"]], "text": "a"}):
        with pytest.raises(ValueError, match="Give sentences or text"):
            client.tag("people", **given)


def test_lines_are_tagged_in_order_by_one_version(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BATCH_BYTES", 60)
    given = ["Ada", ["Ada", "saw"], {"id": "x", "text": "London"}, {"id": 7, "tokens": []}, {"wrong": 1}] * 3
    found = list(client.tag_lines("people", given, marginals=True))
    assert [line.line for line in found] == list(range(1, 16))
    assert [line.tags for line in found[:4]] == [["B-PER"], ["B-PER", "O"], ["B-LOC"], []]
    assert [line.id for line in found[:5]] == [None, None, "x", 7, None]
    assert found[0].probability == pytest.approx(found[0].marginals[0])
    assert found[4].error is not None
    assert found[4].error.errors[0].pointer == "/wrong"
    assert list(client.tag_lines("people", [])) == []
    with pytest.raises(ApiError, match="model_not_found"):
        list(client.tag_lines("nobody", ["Ada"]))


def test_later_batches_name_the_version_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BATCH_BYTES", 1)
    named = []

    def respond(request: httpx.Request) -> httpx.Response:
        named.append(httpx.Response(200, content=request.read().split(b"\n")[0]).json()["model"])
        return httpx.Response(200, content=b'{"model":"m","version":3}\n{"line":2,"tags":["O"]}\n')

    with Client("http://server") as client:
        client._http = httpx.Client(base_url="http://server", transport=httpx.MockTransport(respond))
        assert [line.line for line in client.tag_lines("m@champion", ["a", "b", "c"])] == [1, 2, 3]
    assert named == ["m@champion", "m:3", "m:3"]
