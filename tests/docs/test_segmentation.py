"""The walk-through of word segmentation, done as it says."""

import json
import re
from pathlib import Path

from app.tagging import texts
from core import specs
from core.corpus.segmented import read_segmented
from core.learn import loop
from core.model.tagger import Tagger
from core.steps import finished

PAGE = (Path(__file__).parents[2] / "docs" / "segmentation.md").read_text(encoding="utf-8")


def test_the_walk_through_gives_the_words_it_shows() -> None:
    (text,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    spec, answer = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    (asked,) = re.findall(r'"text": "(\w+)"', PAGE)
    job = specs.parse_job(spec)
    assert isinstance(job, specs.TrainSpec)
    tagger = Tagger(
        finished(loop.train(job, read_segmented([text.encode()], max_line_bytes=1000), None)).model
    )
    lines = texts.lines_of([asked], "characters")
    (found,) = texts.words_in([asked], lines, tagger.tag([line.tokens for line in lines]))
    assert {"words": [found.words], "offsets": [[list(each) for each in found.offsets]]} == answer
