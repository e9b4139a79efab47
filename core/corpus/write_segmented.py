"""Write a corpus of characters as segmented text, the inverse of reading it."""

from collections.abc import Iterator

import numpy as np

from core.corpus import segmentation
from core.corpus.corpus import Corpus
from core.corpus.segmented import Tags
from core.corpus.write import Cells, batches, unwritable
from core.errors import Fault, Invalid


def write_segmented(corpus: Corpus, tags: Tags) -> Iterator[bytes]:
    """A sentence a line, words apart by two spaces; with tags in use `/tag` after each word."""
    labels = corpus.labels
    names = labels.vocabulary.strings() if labels else []
    if labels is None or not segmentation.is_coding(names):
        raise Invalid(
            "The labels of the corpus do not say where words begin.",
            [Fault("labels are not those of 2, 4 or 6 for places in words")],
            code="not_segmented",
        )
    parts = [segmentation.split(name)[1] for name in names]
    if tags == "use" and (None in parts or any("/" in part or " " in part for part in parts if part)):
        raise Invalid(
            "The labels of the corpus have no tags that can follow a word.",
            [Fault("labels are not B-tag, with a tag without blanks and slashes", parameter="tags")],
            code="invalid_options",
        )
    starts = segmentation.word_starts(names, labels.ids, corpus.offsets)
    characters = corpus.columns[0].vocabulary.strings()
    for character in characters:
        if len(character) != 1 or character.isspace() or character < " " or character == "\x7f":
            raise unwritable("segmented text", corpus.columns[0].name, character)
    suffixes = [f"/{part}" if tags == "use" else "" for part in parts]
    columns: list[Cells] = [
        (characters, corpus.columns[0].ids),
        (["", "  "], starts.astype(np.int32)),
        (suffixes, labels.ids),
    ]
    return _chunks(columns, corpus.offsets.tolist())


def _chunks(columns: list[Cells], bounds: list[int]) -> Iterator[bytes]:
    for (characters, gaps, suffixes), cuts in batches(columns, bounds):
        lines = []
        for a, b in cuts:
            # What stands before a character: nothing, or the tag of the word before and a gap.
            before = [
                "",
                *(gap and suffix + gap for gap, suffix in zip(gaps[a + 1 : b], suffixes[a:b], strict=False)),
            ]
            text = "".join(map(str.__add__, before, characters[a:b]))
            lines.append(text + suffixes[b - 1] + "\n" if b > a else "\n")
        yield "".join(lines).encode()
