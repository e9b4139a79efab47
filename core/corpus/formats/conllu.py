"""`conllu`: CoNLL-U. Ten tab-separated fields per word; a blank line after each sentence; comments after `#`.

Words are the lines numbered 1, 2, 3 and so on. Lines of multiword tokens (`1-2`) and empty nodes (`8.1`) are checked
and skipped: the words of a multiword token have their own lines, and an empty node is not part of the text.
(https://universaldependencies.org/format.html)

The reader, the writer and the options also serve `conllx`, which has other fields and no comments.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from tagsmith.core.base.arrays import Bytes, Ids, offsets_of
from tagsmith.core.corpus.corpus import Column, Corpus, Trees
from tagsmith.core.corpus.formats.base import Format, Limits, Options, option_error, split_names
from tagsmith.core.corpus.formats.lines import FAULTS, LineReader
from tagsmith.core.corpus.formats.recognition import UNIVERSAL_TAGS, Head
from tagsmith.core.corpus.formats.scan import words as scanning
from tagsmith.core.corpus.formats.scan.words import (
    CELLS,
    COMPLETE_HEADS,
    ENDS,
    HEADS,
    WIDTH,
    FoundWords,
    Syntax,
    WordLines,
)
from tagsmith.core.corpus.formats.writing import TREE, TREE_FIELDS, write_words
from tagsmith.core.corpus.intern import empty_pool, grown, intern, vocabulary_of
from tagsmith.core.corpus.weights import WEIGHT_REASON, joined_weights

CONLLU = WordLines(
    "CoNLL-U",
    ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"),
    comments=True,
)
FIELDS = CONLLU.fields


class WordReader(LineReader):
    """Reads the fields `columns` as columns of the same names, and the field `label` as labels, or trees.

    `drop_feats` names features that are removed from the field feats.
    """

    reasons: ClassVar[Mapping[int, str]] = {
        scanning.FIELD_COUNT: "expected {1} tab-separated fields, found {0}",
        scanning.ORDER: "expected word {1}, found {0}",
        scanning.HEAD: "the head must be the number of a word of the sentence, or 0 for a root",
        scanning.OWN_HEAD: "word {0} is its own head",
        scanning.RANGE: "the head is {0}, but the sentence has {1} words",
        scanning.CYCLE: "word {0} is in a cycle: following the heads from it leads back to it, not to a root",
        scanning.NO_ROOT: "no word of the sentence has the head 0, so that word {0} is in a cycle",
        scanning.WEIGHT: f"{WEIGHT_REASON}, such as # weight = 2.5",
        scanning.SECOND_WEIGHT: "a second weight for the same sentence",
        scanning.LATE_WEIGHT: "the weight must be before the first word of its sentence",
    }

    def __init__(
        self,
        *,
        max_line_bytes: int,
        labelled: bool = True,
        columns: Sequence[str] = ("form",),
        label: str = "upos",
        lines: WordLines = CONLLU,
        drop_feats: Sequence[str] = (),
    ) -> None:
        super().__init__(max_line_bytes=max_line_bytes, state_size=scanning.STATE_SIZE)
        self._lines = lines
        self._columns = tuple(columns)
        self._labelled = labelled
        self._trees = labelled and label == TREE
        fields = [*columns, *([TREE_FIELDS[1] if self._trees else label] if labelled else [])]
        chosen = np.array([lines.fields.index(field) for field in fields], np.int64)
        head = lines.fields.index(TREE_FIELDS[0]) if self._trees else -1
        self._syntax = Syntax(max_line_bytes, chosen, head, lines.comments)
        self._pool = empty_pool(chosen.size)
        self._feats = fields.index("feats") if drop_feats and "feats" in fields else None
        dropped = [name.encode() for name in drop_feats]
        self._dropped = np.frombuffer(b"".join(dropped), np.uint8), offsets_of(np.array([*map(len, dropped)]))
        self._heads, self._head_lines = np.empty(0, np.int32), np.empty(0, np.int64)
        self._weight = np.ones(1)
        self._head_blocks: list[Ids] = []
        self._weight_blocks: list[NDArray[np.float32]] = []

    def _reason(self, kind: int, a: int, b: int) -> str:
        if kind == scanning.EMPTY:
            return f"the field {self._lines.fields[a]} is empty"
        if kind == scanning.NUMBER:
            others = ", a range such as 3-4 or a node such as 3.1" if self._lines.comments else ""
            return f"the first field must be a word number such as 3{others}"
        return super()._reason(kind, a, b)

    def _scan(self, buffer: Bytes) -> None:
        width = self._syntax.chosen.size
        # The line of a word has at least its tabs, a digit and a newline; an empty line is one byte.
        most = buffer.size // (WIDTH + 1) + 1
        words = self._room(most)
        scanning.scan(buffer, self._syntax, self._state, words, self._faults)
        if not self._state[FAULTS]:
            found = words.spans[: self._state[CELLS]]
            if self._feats is not None:
                buffer = buffer.copy()
                scanning.drop_features(buffer, found[self._feats :: width], *self._dropped)
            self._pool, ids = intern(self._pool, buffer, found[:, 0], found[:, 1], width)
            ends = self._state[ENDS]
            self._keep([ids[k::width].copy() for k in range(width)], words.ends[:ends].copy())
            self._weight_blocks.append(words.weights[:ends].copy())
        self._keep_heads()

    def _room(self, most: int) -> FoundWords:
        """Return empty arrays for `most` words more, with the heads of the incomplete sentence."""
        width = self._syntax.chosen.size
        room = int(self._state[HEADS]) + most if self._trees else 0
        if room > self._heads.size:
            used, room = int(self._state[HEADS]), max(room, 2 * self._heads.size)
            self._heads, self._head_lines = (
                grown(self._heads, used, room),
                grown(self._head_lines, used, room),
            )
        return FoundWords(
            spans=np.empty((most * width, 2), np.int64),
            ends=np.empty(most + 1, np.int64),
            weights=np.empty(most + 1, np.float32),
            heads=self._heads,
            lines=self._head_lines,
            marks=np.empty(room + 1, np.int64),
            bounds=np.empty(WIDTH + 1, np.int64),
            number=np.empty(1, np.int64),
            weight=self._weight,
        )

    def _keep_heads(self) -> None:
        """Keep the heads of complete sentences, and move the others to the front.

        The heads of a sentence are moved once, however many batches it has.
        """
        complete, found = int(self._state[COMPLETE_HEADS]), int(self._state[HEADS])
        if complete == 0:
            return
        if self._state[FAULTS]:
            self._head_blocks.clear()
        else:
            self._head_blocks.append(self._heads[:complete].copy())
        self._heads[: found - complete] = self._heads[complete:found].copy()
        self._head_lines[: found - complete] = self._head_lines[complete:found].copy()
        self._state[COMPLETE_HEADS], self._state[HEADS] = 0, found - complete

    def _corpus(self) -> Corpus:
        columns = [
            Column(name, vocabulary_of(self._pool, number), self._ids(number))
            for number, name in enumerate([*self._columns, *self._label_names()])
        ]
        given = joined_weights(self._weight_blocks)
        offsets = self._offsets()
        if not self._labelled:
            return Corpus(tuple(columns), None, offsets, weights=given)
        *features, last = columns
        if not self._trees:
            return Corpus(tuple(features), last, offsets, weights=given)
        trees = Trees(np.concatenate(self._head_blocks), last)
        return Corpus(tuple(features), None, offsets, weights=given, trees=trees)

    def _label_names(self) -> list[str]:
        return ["relation" if self._trees else "label"] if self._labelled else []


def read_conllu(
    chunks: Iterable[bytes],
    *,
    max_line_bytes: int,
    labelled: bool = True,
    columns: Sequence[str] = ("form",),
    label: str = "upos",
) -> Corpus:
    """Read a corpus from `chunks`, which may end anywhere."""
    return WordReader(max_line_bytes=max_line_bytes, labelled=labelled, columns=columns, label=label).read(
        chunks
    )


def warm() -> None:
    """Compile the kernels of this module, or load them from the cache."""
    line = b"1\ta\t_\tX\t_\tid=1\t0\troot\t_\t_\n"
    WordReader(max_line_bytes=64, columns=("feats",), label=TREE, drop_feats=("id",)).read([line])


class WordOptions(Options):
    """The fields to read or write, by name."""

    lines: ClassVar[WordLines]

    columns: Annotated[tuple[str, ...], BeforeValidator(split_names)] = ("form",)
    label: str = TREE

    @field_validator("columns")
    @classmethod
    def _columns_are_fields(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        if columns in ((), ("",)):
            raise option_error("name at least one field")
        for index, name in enumerate(columns):
            cls._check_field(name)
            if name in columns[:index]:
                raise option_error(f"{name!r} is named twice")
        return columns

    @field_validator("label")
    @classmethod
    def _label_is_another_field(cls, label: str, info: ValidationInfo) -> str:
        columns = info.data.get("columns", ())
        if label == TREE:
            for field in TREE_FIELDS:
                if field in columns:
                    raise option_error(f"with label=tree, {field} must not be one of the columns")
            return label
        cls._check_field(label)
        if label in columns:
            raise option_error(f"the label {label} must not be one of the columns")
        return label

    @model_validator(mode="after")
    def _trees_have_no_coding(self) -> Self:
        if self.label == TREE and (self.labels is not None or self.repair or self.partial):
            raise option_error(
                "Trees have no labels. Remove `labels`, `repair` and `partial`, or name a field as `label`."
            )
        return self

    @classmethod
    def _check_field(cls, name: str) -> None:
        if name not in cls.lines.fields:
            raise option_error(f"{name!r} is not a field; fields: {', '.join(cls.lines.fields)}")


class ConlluOptions(WordOptions):
    """The fields to read or write, by name."""

    lines: ClassVar[WordLines] = CONLLU

    columns: Annotated[tuple[str, ...], BeforeValidator(split_names)] = Field(
        default=("form",),
        description=f"Fields that become columns, in this order: any of {', '.join(FIELDS)}.",
    )
    label: str = Field(
        default="upos",
        validate_default=True,
        description="Field that holds the labels, not one of the columns; or `tree`: heads and relations are read.",
    )


def word_reader(options: WordOptions, limits: Limits, drop_feats: Sequence[str] = ()) -> WordReader:
    """Return the reader of a format with such lines."""
    return WordReader(
        max_line_bytes=limits.max_line_bytes,
        labelled=options.labelled,
        columns=options.columns,
        label=options.label,
        lines=options.lines,
        drop_feats=drop_feats,
    )


def word_writer(corpus: Corpus, options: WordOptions) -> Iterator[bytes]:
    """Write a corpus in a format with such lines."""
    return write_words(corpus, options.lines, options.columns, options.label)


#: The first field of a line: a word, a multiword token or an empty node.
_FIRST_FIELD = re.compile(r"[0-9]+([-.][0-9]+)?")


def has_word_lines(head: Head) -> bool:
    """Ten fields per line, the first of them a number. One faulty line does not make it another format."""
    rows = _rows(head)
    alike = sum(len(row) == WIDTH and bool(_FIRST_FIELD.fullmatch(row[0])) for row in rows)
    return 0 < len(rows) < 2 * alike


def is_conllx(head: Head) -> bool:
    """Whether word lines are of CoNLL-X: no comment, only plain words, heads, and tags of another set than CoNLL-U has.

    In all other cases they are taken for CoNLL-U.
    """
    rows = _rows(head)
    if len(rows) < len(head.filled) or any(set("-.") & set(row[0]) for row in rows):
        return False
    other = sum(
        len(row) == WIDTH and row[6].isdigit() and row[3] not in UNIVERSAL_TAGS and row[3] != "_"
        for row in rows
    )
    return len(rows) < 2 * other


def _rows(head: Head) -> list[list[str]]:
    return [line.split("\t") for line in head.filled if not line.startswith("#")]


FORMAT = Format(
    name="conllu",
    options=ConlluOptions,
    reader=word_reader,
    writer=word_writer,
    warm=warm,
    holds_trees=True,
    recognises=lambda head: has_word_lines(head) and not is_conllx(head),
    order=4,
)
