"""`segmented`: text for word segmentation. One sentence per line, words separated by blanks.

Tokens are the characters of the words. Blanks are the space, the tab and the ideographic space. A word may have a tag
after its last slash.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from tagsmith.core.base.arrays import Bytes, Ids, Places, numbered
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.jit import inner, kernel
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats.base import Format, Limits, Options
from tagsmith.core.corpus.formats.lines import (
    FAULTS,
    LINE,
    LONG,
    OWN_FAULTS,
    OWN_STATE,
    TOKENS,
    LineReader,
    byte_fault,
    record,
    sequence_length,
)
from tagsmith.core.corpus.formats.recognition import Head
from tagsmith.core.corpus.formats.writing import TextColumn, batches, unwritable
from tagsmith.core.corpus.intern import empty_pool, intern, vocabulary_of
from tagsmith.core.corpus.labels import segmentation
from tagsmith.core.corpus.labels.segmentation import Coding
from tagsmith.core.corpus.vocabulary import Vocabulary

#: How to read `/tag` after a word: as characters, not at all, or as part of the labels.
Tags = Literal["none", "strip", "use"]
_TAG_CODES: dict[Tags, int] = {"none": 0, "strip": 1, "use": 2}
_USE = _TAG_CODES["use"]

# Indices of the state array: numbers of characters, words and sentence ends in this batch.
_CHARACTERS, _WORDS, _ENDS, _STATE_SIZE = range(OWN_STATE, OWN_STATE + 4)

_UNTAGGED = OWN_FAULTS


@inner
def _blank_length(buffer: Bytes, i: int, stop: int) -> int:
    """Return the length in bytes of the blank at `i`, 0 if there is none."""
    if buffer[i] == 32 or buffer[i] == 9:
        return 1
    if i + 3 <= stop and buffer[i] == 0xE3 and buffer[i + 1] == 0x80 and buffer[i + 2] == 0x80:
        return 3
    return 0


@inner
def _slash(buffer: Bytes, start: int, stop: int) -> int:
    """Return the index of the slash before the tag of a word, `stop` if there is none.

    It is the last slash, if there are characters on both sides of it.
    """
    i = stop - 1
    while i > start and buffer[i] != 47:
        i -= 1
    return i if start < i < stop - 1 else stop


@kernel
def _scan(
    buffer: Bytes,
    limits: Places,
    state: Places,
    characters: Places,
    lengths: Places,
    tags: Places,
    ends: Places,
    faults: Places,
) -> None:
    """Read whole lines (the buffer ends with a newline).

    `limits` is (longest line, code of `Tags`). The rows of `characters` and of `tags` (one per word) are spans of
    bytes. `lengths` is the number of characters of each word.
    """
    count, words, sentences = 0, 0, 0
    following = 0
    while following < buffer.size and state[FAULTS] < faults.shape[0]:
        state[LINE] += 1
        i = following
        stop = i
        while buffer[stop] != 10:
            stop += 1
        following = stop + 1
        if stop - i > limits[0]:
            record(state, faults, LONG, limits[0], 0)
            continue
        stop -= stop > i and buffer[stop - 1] == 13
        if byte_fault(buffer, i, stop, state, faults):
            continue
        first, first_word = count, words
        while i < stop:
            blank = _blank_length(buffer, i, stop)
            if blank:
                i += blank
                continue
            start = i
            while i < stop and _blank_length(buffer, i, stop) == 0:
                i += 1
            slash = _slash(buffer, start, i) if limits[1] else i
            if limits[1] == _USE and slash == i:
                record(state, faults, _UNTAGGED, words - first_word + 1, 0)
                break
            tags[words, 0], tags[words, 1] = min(slash + 1, i), i
            before = count
            while start < slash:
                characters[count, 0] = start
                start += sequence_length(buffer, start, slash)
                characters[count, 1] = start
                count += 1
            lengths[words] = count - before
            words += 1
        if count > first:
            state[TOKENS] += count - first
            ends[sentences] = state[TOKENS]
            sentences += 1
    state[_CHARACTERS], state[_WORDS], state[_ENDS] = count, words, sentences


class SegmentedReader(LineReader):
    """Reads one column, the characters, and labels in a coding of `tagsmith.core.corpus.labels.segmentation`.

    With `tags="use"` a label is `B-tag`. In unlabelled text blanks are skipped too, but they do not separate words.
    """

    reasons: ClassVar[Mapping[int, str]] = {_UNTAGGED: "word {0} has no tag after a slash"}

    def __init__(
        self, *, max_line_bytes: int, labelled: bool = True, coding: Coding = 4, tags: Tags = "none"
    ) -> None:
        super().__init__(max_line_bytes=max_line_bytes, state_size=_STATE_SIZE)
        self._labelled = labelled
        self._coding = coding
        self._uses_tags = tags == "use"
        self._limits = np.array([max_line_bytes, _TAG_CODES[tags]], np.int64)
        self._characters = empty_pool(1)
        self._tags = empty_pool(1)

    def _scan(self, buffer: Bytes) -> None:
        characters = np.empty((buffer.size, 2), np.int64)
        # A word and its separator take at least two bytes, and so does a line.
        most = buffer.size // 2 + 1
        lengths, ends, tags = (
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty((most, 2), np.int64),
        )
        _scan(buffer, self._limits, self._state, characters, lengths, tags, ends, self._faults)
        if self._state[FAULTS]:
            return
        spans = characters[: self._state[_CHARACTERS]]
        self._characters, ids = intern(self._characters, buffer, spans[:, 0], spans[:, 1], 1)
        columns = [ids]
        if self._labelled:
            words = self._state[_WORDS]
            columns.append(self._codes(buffer, lengths[:words], tags[:words]))
        self._keep(columns, ends[: self._state[_ENDS]].copy())

    def _codes(self, buffer: Bytes, lengths: Places, tags: Places) -> Ids:
        """Return labels as numbers: tag * (number of positions) + position."""
        codes = segmentation.encode(lengths, self._coding)
        if not self._uses_tags:
            return codes
        self._tags, ids = intern(self._tags, buffer, tags[:, 0], tags[:, 1], 1)
        return codes + np.int32(len(segmentation.LABELS[self._coding])) * np.repeat(ids, lengths)

    def _corpus(self) -> Corpus:
        column = Column("0", vocabulary_of(self._characters, 0), self._ids(0))
        labels = self._labels(self._ids(1)) if self._labelled else None
        return Corpus((column,), labels, self._offsets())

    def _labels(self, codes: Ids) -> Column:
        positions = segmentation.LABELS[self._coding]
        tags = vocabulary_of(self._tags, 0).strings() if self._uses_tags else []
        found, ids = numbered(codes)
        names = []
        for code in found.tolist():
            tag, position = divmod(code, len(positions))
            names.append(f"{positions[position]}-{tags[tag]}" if tags else positions[position])
        return Column("label", Vocabulary.from_strings(names), ids)


def read_segmented(
    chunks: Iterable[bytes],
    *,
    max_line_bytes: int,
    labelled: bool = True,
    coding: Coding = 4,
    tags: Tags = "none",
) -> Corpus:
    """Read a corpus from `chunks`, which may end anywhere."""
    return SegmentedReader(max_line_bytes=max_line_bytes, labelled=labelled, coding=coding, tags=tags).read(
        chunks
    )


def write_segmented(corpus: Corpus, tags: Tags) -> Iterator[bytes]:
    """Write one sentence per line, with two spaces between words and, with `tags="use"`, `/tag` after each word."""
    labels = corpus.labels
    names = labels.vocabulary.strings() if labels else []
    if labels is None or not segmentation.is_coding(names):
        raise Invalid(
            "The labels of the corpus do not code words. Choose another format.",
            [Fault("The labels are not those of coding 2, 4 or 6.")],
            code="not_segmented",
        )
    word_tags = [segmentation.split(name)[1] for name in names]
    if tags == "use" and (None in word_tags or any("/" in tag or " " in tag for tag in word_tags if tag)):
        raise Invalid(
            "The labels of the corpus have no tags to write after words. Use tags=none.",
            [
                Fault(
                    "every label must be such as B-tag, with a tag without blanks and slashes",
                    parameter="tags",
                )
            ],
            code="invalid_options",
        )
    starts = segmentation.word_starts(names, labels.ids, corpus.offsets)
    characters = corpus.columns[0].vocabulary.strings()
    for character in characters:
        if len(character) != 1 or character.isspace() or character < " " or character == "\x7f":
            raise unwritable("segmented text", corpus.columns[0].name, character)
    suffixes = [f"/{tag}" if tags == "use" else "" for tag in word_tags]
    columns: list[TextColumn] = [
        (characters, corpus.columns[0].ids),
        (["", "  "], starts.astype(np.int32)),
        (suffixes, labels.ids),
    ]
    return _chunks(columns, corpus.offsets.tolist())


def _chunks(columns: list[TextColumn], bounds: list[int]) -> Iterator[bytes]:
    for (characters, gaps, suffixes), cuts in batches(columns, bounds):
        lines = []
        for a, b in cuts:
            # The text before a character: nothing, or the tag of the previous word and a gap.
            before = [
                "",
                *(gap and suffix + gap for gap, suffix in zip(gaps[a + 1 : b], suffixes[a:b], strict=False)),
            ]
            text = "".join(map(str.__add__, before, characters[a:b]))
            lines.append(text + suffixes[b - 1] + "\n" if b > a else "\n")
        yield "".join(lines).encode()


def warm() -> None:
    """Compile the kernels of this module, or load them from the cache."""
    read_segmented([b"ab c\n"], max_line_bytes=64)


def _as_number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


class SegmentedOptions(Options):
    """The coding of words as labels, and the meaning of slashes."""

    coding: Annotated[Coding, BeforeValidator(_as_number)] = Field(
        default=4, description="Number of labels that code the position of a character in its word."
    )
    tags: Tags = Field(
        default="none",
        description="Meaning of a slash after a word: `none` (an ordinary character), `strip` (remove it and what "
        "follows) or `use` (what follows is part of the labels).",
    )


def _reader(options: SegmentedOptions, limits: Limits) -> SegmentedReader:
    return SegmentedReader(
        max_line_bytes=limits.max_line_bytes,
        labelled=options.labelled,
        coding=options.coding,
        tags=options.tags,
    )


def _writer(corpus: Corpus, options: SegmentedOptions) -> Iterator[bytes]:
    return write_segmented(corpus, options.tags)


#: Characters of languages that are written without blanks: Thai to Khmer, kana, Han, Hangul, full-width forms.
_UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)


def _recognises(head: Head) -> bool:
    """Lines of a language without blanks, with different numbers of words. Column text has one number of columns."""
    if len({len(line.split()) for line in head.filled}) < 2 or "\t" in "".join(head.filled):
        return False
    text = "".join(head.filled).replace(" ", "").replace("\u3000", "")
    return len(text) < 2 * len(_UNSPACED.findall(text))


FORMAT = Format(
    name="segmented",
    options=SegmentedOptions,
    reader=_reader,
    writer=_writer,
    warm=warm,
    recognises=_recognises,
    order=5,
)
