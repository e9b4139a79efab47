"""The steps of the page about word segmentation work as described."""

import json
import re
from pathlib import Path

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats.segmented import read_segmented
from tagsmith.core.jobs import kinds
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.model.use.text import sentences_of, tokenizer_of
from tagsmith.core.model.use.words import words_in
from tests.training import train

PAGE = (Path(__file__).parents[2] / "docs" / "segmentation.md").read_text(encoding="utf-8")


def test_the_walk_through_gives_the_words_it_shows() -> None:
    (text,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    spec, answer = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    (asked,) = re.findall(r'"text": "(\w+)"', PAGE)
    job = kinds.parse_job(spec)
    assert isinstance(job, TrainSpec)
    tagger = Tagger(finished(train(job, read_segmented([text.encode()], max_line_bytes=1000), None)).model)
    sentences = sentences_of([asked], tokenizer_of(tagger))
    (found,) = words_in([asked], sentences, tagger.tag([sentence.tokens for sentence in sentences]))
    assert {"words": [found.words], "offsets": [[list(each) for each in found.offsets]]} == answer
