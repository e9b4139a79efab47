"""The page about tagging shows what the code answers."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tagsmith.app.tagging import lines, parsing, service
from tagsmith.app.tagging.serving import Served
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.jobs import kinds
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.registry.references import Target
from tests.training import train

PATH = Path(__file__).parents[2] / "docs" / "tagging.md"
PAGE = PATH.read_text(encoding="utf-8")
TEXTS = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
(TREES,) = re.findall(r"```conllu\n(.*?)```", PAGE, re.DOTALL)
ALL_BLOCKS = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
SPECS = {block["model"]: block for block in ALL_BLOCKS if block.get("kind") == "train"}
BLOCKS = [block for block in ALL_BLOCKS if block.get("kind") != "train"]


@pytest.fixture(scope="module")
def models() -> dict[str, Served]:
    """The models that the page describes."""
    trees = {"columns": "form,upos", "label": "tree"}
    corpora = {
        "chunker": read_conll([TEXTS[0].encode()], max_line_bytes=1000),
        "parser": formats.read([TREES.encode()], "conllu", max_line_bytes=1000, options=trees),
    }
    return {name: _served(name, spec, corpora[name]) for name, spec in SPECS.items()}


def _served(name: str, spec: Any, corpus: Corpus) -> Served:
    job = kinds.parse_job(spec)
    assert isinstance(job, TrainSpec)
    return Served(Target(name, 1, ""), Tagger(finished(train(job, corpus, None)).model))


def near(value: Any) -> Any:
    """The same value, its numbers to be met to two digits: weights depend on the processor in their last."""
    if isinstance(value, float):
        return pytest.approx(value, abs=0.006)
    if isinstance(value, list):
        return [near(each) for each in value]
    return {name: near(each) for name, each in value.items()} if isinstance(value, dict) else value


def answered(served: Served, request: Any) -> Any:
    return json.loads(service.tag(served, parsing.parse(json.dumps(request).encode(), None)).body)


@pytest.mark.parametrize(
    ("request_", "answer"), list(zip(BLOCKS[::2], BLOCKS[1::2], strict=True)), ids=range(len(BLOCKS) // 2)
)
def test_examples_are_answered_as_shown(models: dict[str, Served], request_: Any, answer: Any) -> None:
    assert answered(models[request_["model"]], request_) == near(answer)


def test_the_stream_is_answered_as_shown(models: dict[str, Served]) -> None:
    served = models["chunker"]
    given, shown = (text.encode().splitlines() for text in TEXTS[1:])
    stream = lines.Lines(served, lines.options_of(given[0]), lines.LineLimits(1000, 1000))
    assert [json.loads(line) for line in stream.batch(given[1:], 2)[0].splitlines()] == [
        json.loads(line) for line in shown[1:]
    ]
    assert json.loads(shown[0]) == {"model": "chunker", "version": 1}
    assert np.array(given).size == len(shown)
