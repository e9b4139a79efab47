"""Read segmented text: a sentence a line, words apart by blanks; tokens are the characters of the words.

Blanks are the space, the tab and the ideographic space. A word may carry a tag after its last slash.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

import numpy as np

from core.corpus import segmentation
from core.corpus.arrays import Bytes, Ids, Places, numbered
from core.corpus.corpus import Column, Corpus
from core.corpus.intern import empty_pool, intern, vocabulary_of
from core.corpus.lines import (
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
from core.corpus.segmentation import Coding
from core.corpus.vocabulary import Vocabulary
from core.jit import inner, kernel

#: What to do with `/tag` after a word: nothing (a slash is a character), leave it out, or make it part of the labels.
Tags = Literal["none", "strip", "use"]
_TAG_CODES: dict[Tags, int] = {"none": 0, "strip": 1, "use": 2}
_STRIP, _USE = 1, 2

# Places in the state array: what was found in this batch.
_CHARACTERS, _WORDS, _ENDS, _STATE_SIZE = range(OWN_STATE, OWN_STATE + 4)

_UNTAGGED = OWN_FAULTS


@inner
def _blank_length(buffer: Bytes, i: int, stop: int) -> int:
    """Bytes of the blank at `i`, 0 if none stands there."""
    if buffer[i] == 32 or buffer[i] == 9:
        return 1
    if i + 3 <= stop and buffer[i] == 0xE3 and buffer[i + 1] == 0x80 and buffer[i + 2] == 0x80:
        return 3
    return 0


@inner
def _slash(buffer: Bytes, start: int, stop: int) -> int:
    """Place of the slash before the tag of a word: the last, with something on either side; `stop` if none is."""
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
    """Read whole lines (the buffer ends in a newline).

    `limits` is (longest line, what to do with tags); a row of `characters` is a span of bytes, and so is one of
    `tags`, one a word; `lengths` are the characters of each word.
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
    """Gives one column, the characters, and labels in a coding of `core.corpus.segmentation`.

    With tags in use a label is `B-tag`. Unlabelled, the text is its characters: blanks part no words then, and are
    left out all the same.
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
        # A word takes two bytes with what ends it, and so does a line.
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
        """Labels as numbers: the tag's, times the labels of the coding, plus the place in these."""
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
    """The corpus in `chunks`, which may be cut anywhere."""
    return SegmentedReader(max_line_bytes=max_line_bytes, labelled=labelled, coding=coding, tags=tags).read(
        chunks
    )


def warm() -> None:
    """Compile, or load from the cache, every kernel of this module."""
    read_segmented([b"ab c\n"], max_line_bytes=64)
