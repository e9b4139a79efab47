"""Write a corpus as CRFsuite's data or as JSON lines, the inverse of reading it."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
import orjson

from core.corpus.bag import Cells
from core.corpus.corpus import Corpus
from core.errors import Fault, Invalid

#: Tokens turned into text at a time.
_CHUNK_TOKENS = 20_000

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_ESCAPED = re.compile(r"[:\\]")
#: What a name of CRFsuite's data cannot hold: it would end a field or a line.
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f]|^$")


#: The formats that can hold bags.
BAG_FORMATS = ("crfsuite", "ndjson")


def check_columns(corpus: Corpus, format_name: str) -> None:
    """Raise Invalid when a corpus of bags is to be written in a format of columns."""
    if corpus.bag is not None:
        reason = f"{format_name} holds columns; tokens with named attributes are written as {' or '.join(BAG_FORMATS)}"
        raise Invalid(
            "The corpus cannot be written in that format.", [Fault(reason)], code="unwritable_value"
        )


def write_crfsuite(corpus: Corpus) -> Iterator[bytes]:
    """A token a line: the label, if there is one, and attributes. Columns become attributes `name=value`."""
    labels = _names(corpus.labels.vocabulary.strings(), "label") if corpus.labels else []
    wrong = [label for label in labels if label.startswith("@") or not label.strip(" ")]
    if wrong:
        raise _unwritable("label", wrong[0])
    if corpus.bag is not None:
        names = [_names(corpus.bag.vocabulary.strings(), "attribute")]
    else:
        names = [
            _names([f"{column.name}={text}" for text in column.vocabulary.strings()], column.name)
            for column in corpus.columns
        ]
    return _crfsuite(corpus, labels, names)


def _crfsuite(corpus: Corpus, labels: list[str], names: list[list[str]]) -> Iterator[bytes]:
    first = labels[corpus.labels.ids[0]] if corpus.labels is not None and corpus.tokens else ""
    if first.startswith("\ufeff"):
        yield BYTE_ORDER_MARK  # A reader takes the first one for the file's.
    for first, last in _parts(corpus):
        begin, end = int(corpus.offsets[first]), int(corpus.offsets[last])
        if corpus.bag is not None:
            rows = _rows(corpus.bag.cells.part(begin, end), names[0])
        else:
            cells = [
                [strings[i] for i in column.ids[begin:end].tolist()]
                for strings, column in zip(names, corpus.columns, strict=True)
            ]
            rows = [list(row) for row in zip(*cells, strict=True)]
        if corpus.labels is not None:
            gold = corpus.labels.ids[begin:end].tolist()
            rows = [[labels[label], *row] for label, row in zip(gold, rows, strict=True)]
        elif not all(rows):
            raise _unwritable("token", "without a label and without attributes")
        lines = ["\t".join(row) for row in rows]
        cuts = (corpus.offsets[first : last + 1] - begin).tolist()
        yield "".join(
            "".join(f"{line}\n" for line in lines[cuts[i] : cuts[i + 1]]) + "\n" for i in range(last - first)
        ).encode()


def _rows(cells: Cells, names: list[str]) -> list[list[str]]:
    """The attributes of each token as they are written."""
    texts = [names[i] for i in cells.ids.tolist()]
    if cells.values.size:
        values = cells.values.astype("U32").tolist()
        texts = [
            text if value == "1.0" else f"{text}:{value}" for text, value in zip(texts, values, strict=True)
        ]
    starts = cells.starts.tolist()
    return [texts[starts[t] : starts[t + 1]] for t in range(cells.tokens)]


def write_ndjson(corpus: Corpus) -> Iterator[bytes]:
    """A sequence a line: tokens as strings, lists of columns or objects, and labels if there are any."""
    labels = corpus.labels.vocabulary.strings() if corpus.labels else []
    if corpus.bag is not None:
        names = [corpus.bag.vocabulary.strings()]
    else:
        names = [column.vocabulary.strings() for column in corpus.columns]
    for first, last in _parts(corpus):
        begin, end = int(corpus.offsets[first]), int(corpus.offsets[last])
        tokens = _tokens(corpus, names, begin, end)
        gold = [] if corpus.labels is None else [labels[i] for i in corpus.labels.ids[begin:end].tolist()]
        cuts = (corpus.offsets[first : last + 1] - begin).tolist()
        lines = []
        for i in range(last - first):
            here = slice(cuts[i], cuts[i + 1])
            line = {"tokens": tokens[here], **({"labels": gold[here]} if corpus.labels else {})}
            lines.append(orjson.dumps(line) + b"\n")
        yield b"".join(lines)


def _tokens(corpus: Corpus, names: Sequence[list[str]], begin: int, end: int) -> list[object]:
    if corpus.bag is None:
        cells = [
            [strings[i] for i in column.ids[begin:end].tolist()]
            for strings, column in zip(names, corpus.columns, strict=True)
        ]
        return list(cells[0]) if len(cells) == 1 else [list(row) for row in zip(*cells, strict=True)]
    part = corpus.bag.cells.part(begin, end)
    values = part.values if part.values.size else np.ones(part.ids.size, np.float32)
    # The shortest decimals that are read back as the same float32.
    numbers = [float(text) for text in values.astype("U32").tolist()]
    ids, starts = part.ids.tolist(), part.starts.tolist()
    tokens: list[object] = []
    for t in range(part.tokens):
        token: dict[str, float] = {}
        for k in range(starts[t], starts[t + 1]):
            # An object has a name once: attributes given twice are one with the sum.
            name = names[0][ids[k]]
            token[name] = token.get(name, 0.0) + numbers[k]
        tokens.append(token)
    return tokens


def _parts(corpus: Corpus) -> Iterator[tuple[int, int]]:
    """Cut the sentences into runs of about `_CHUNK_TOKENS` tokens."""
    first = 0
    while first < corpus.sentences:
        target = corpus.offsets[first] + _CHUNK_TOKENS
        last = max(first + 1, int(np.searchsorted(corpus.offsets, target, side="right")) - 1)
        last = min(last, corpus.sentences)
        yield first, last
        first = last


def _names(strings: list[str], what: str) -> list[str]:
    for text in strings:
        if _UNWRITABLE.search(text):
            raise _unwritable(what, text)
    return [_ESCAPED.sub(r"\\\g<0>", text) for text in strings]


def _unwritable(what: str, text: str) -> Invalid:
    return Invalid(
        "The corpus has a value that CRFsuite's data cannot hold.",
        [Fault(f"{what}: {text!r}")],
        code="unwritable_value",
    )
