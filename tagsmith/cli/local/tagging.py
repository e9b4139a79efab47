"""`tagsmith tag --local`: a model file as an engine.

Columns go from bytes to bytes: the readers of corpora number the values, the kernels decode all sentences of a block,
and each line gets its tag. No step works on single sentences.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.cli.inputs import Rows
from tagsmith.cli.local import reading, splitting
from tagsmith.cli.local.splitting import TokenPlace
from tagsmith.cli.recognition import HEAD_BYTES
from tagsmith.cli.tagged import LabelledSpan, TaggedSentence
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.evaluate.spans import spans_of
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.evaluation import predicted_labels

if TYPE_CHECKING:
    from tagsmith.cli.commands.tag import TagPlan

#: Bytes that a thread reads and tags at a time: large compared with the cost of a block, small in memory.
BLOCK_BYTES = 1 << 19
#: A line that begins with it is not a token.
DOCUMENT_START = b"-DOCSTART-"
#: Where a block has none of these, every line that is not empty is a token and ends with its last column.
UNUSUAL = (b" \n", b"\t\n", b"\r", DOCUMENT_START)


@dataclass(frozen=True)
class LocalEngine:
    """A model file that is ready to tag."""

    tagger: Tagger
    tokenizer: str | None = None
    probabilities: bool = False
    conllu: bool = False

    @classmethod
    def open(cls, path: Path) -> "LocalEngine":
        """Open a model file."""
        return cls(reading.tagger_of(path))

    @property
    def columns(self) -> int:
        """The number of columns that the model needs."""
        return self.tagger.columns

    def with_plan(self, plan: "TagPlan") -> "LocalEngine":
        """Return the engine with the options of a command."""
        return replace(
            self,
            tokenizer=plan.tokenizer,
            probabilities=plan.probabilities,
            conllu=plan.content == "conllu",
        )

    def tag_columns(self, blocks: Iterable[bytes], target: IO[bytes], *, probabilities: bool) -> None:
        """Write column text with a tag at the end of each line. Everything else of a line stays as it is.

        Kernels release the interpreter, so threads work on several blocks at a time. Blocks are written in order.
        """
        threads = os.cpu_count() or 1
        pending: deque[Future[bytes]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            before = 0
            try:
                for block in _whole_sentences(blocks):
                    pending.append(
                        pool.submit(self._tagged_block, block, before, probabilities=probabilities)
                    )
                    before += block.count(b"\n")
                    if len(pending) > threads:
                        target.write(pending.popleft().result())
                while pending:
                    target.write(pending.popleft().result())
            finally:
                for each in pending:
                    each.cancel()

    def _tagged_block(self, block: bytes, before: int, *, probabilities: bool) -> bytes:
        """Tag a block that begins after `before` lines."""
        reader = formats.reader("conll", max_line_bytes=reading.MAX_LINE_BYTES, labelled=False)
        try:
            reader.feed(block)
            corpus = reader.finish()
        except Invalid as error:
            if error.code == "empty_corpus":
                return block
            faults = [replace(fault, line=fault.line and fault.line + before) for fault in error.faults]
            raise Invalid(error.message, faults, code=error.code) from None
        if len(corpus.columns) < self.columns:
            fault = Fault(f"has {len(corpus.columns)} columns", line=before + 1)
            raise Invalid(
                f"The model needs {self.columns} columns per token.", [fault], code="missing_column"
            )
        separator = b"\t" if b"\t" in block[:HEAD_BYTES] else b" "
        ends = np.array([*(separator + label.encode() for label in self.tagger.labels), b""], object)
        if not probabilities:
            return _with_tags(block, ends, finished(predicted_labels(self.tagger, corpus)))
        found = decode(self.tagger, self.tagger.code_corpus(corpus), DecodingOptions(probabilities=True))
        likely = np.array([*(separator + b"%.4f" % each for each in found.marginals.tolist()), b""], object)
        both = np.append(ends[found.labels] + likely[:-1], b"")
        return _with_tags(block, both, np.arange(corpus.tokens))

    def rows(self, sentences: list[Rows]) -> list[TaggedSentence]:
        """Tag sentences of columns."""
        tokens: list[Any] = [[row[1:2] for row in rows] for rows in sentences] if self.conllu else sentences
        return [
            replace(found, rows=rows) for found, rows in zip(self._tagged(tokens), sentences, strict=True)
        ]

    def text(self, lines: list[str]) -> list[TaggedSentence]:
        """Tag lines of text. A line may have several sentences; its entry has the tokens of all."""
        places = splitting.sentences_of(lines, self.tagger, self.tokenizer)
        tokens = [
            [line[a:b] for a, b in sentence]
            for line, sentences in zip(lines, places, strict=True)
            for sentence in sentences
        ]
        tagged = iter(self._tagged(tokens))
        return [
            _line(line, sentences, list(islice(tagged, len(sentences))))
            for line, sentences in zip(lines, places, strict=True)
        ]

    def objects(self, objects: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Tag the objects of NDJSON."""
        for given in objects:
            if "tokens" in given:
                (found,) = self._tagged([given["tokens"]])
                made: dict[str, Any] = {}
            else:
                (found,) = self.text([given["text"]])
                made = {"tokens": [row[0] for row in found.rows]}
            made |= {"tags": found.tags, "spans": [span.as_dict() for span in found.spans]}
            if self.probabilities:
                made["marginals"] = [round(each, 4) for each in found.probabilities]
            yield {**({"id": given["id"]} if "id" in given else {}), **made}

    def _tagged(self, sentences: Sequence[Any]) -> list[TaggedSentence]:
        coded = self.tagger.code(sentences)
        if self.probabilities:
            decoded = decode(self.tagger, coded, DecodingOptions(probabilities=True, spans=True))
            ids, marginals = decoded.labels, decoded.marginals.tolist()
            certain = decoded.span_probabilities.tolist()
        else:
            ids, marginals, certain = self.tagger.decode(coded), [], []
        tags = self.tagger.named(ids)
        made = []
        for sentence, (begin, end) in zip(sentences, pairwise(coded.offsets.tolist()), strict=True):
            rows = [_row(token) for token in sentence]
            found = TaggedSentence(rows, tags[begin:end], marginals[begin:end], [])
            made.append(replace(found, spans=_spans(found, certain[begin:end], self.tagger.labels)))
        return made


def _row(token: Any) -> list[str]:
    if isinstance(token, str):
        return [token]
    return (
        [str(each) for each in token]
        if not isinstance(token, dict)
        else [str(next(iter(token.values()), ""))]
    )


def _spans(sentence: TaggedSentence, certain: list[float], labels: list[str]) -> list[LabelledSpan]:
    """Return the spans of a sentence. `certain` has the probability of each at its first token, or is empty."""
    return [
        LabelledSpan(
            span.type,
            span.start,
            span.stop,
            " ".join(row[0] for row in sentence.rows[span.start : span.stop]),
            probability=certain[span.start] if certain else None,
        )
        for span in spans_of(sentence.tags, labels)
    ]


def _line(line: str, places: list[list[TokenPlace]], tagged: list[TaggedSentence]) -> TaggedSentence:
    """Join the sentences of a line, and add characters to their spans."""
    spans, before = [], 0
    for where, found in zip(places, tagged, strict=True):
        for span in found.spans:
            begin, end = where[span.start][0], where[span.stop - 1][1]
            moved = replace(span, start=before + span.start, stop=before + span.stop)
            spans.append(replace(moved, text=line[begin:end], begin=begin, end=end))
        before += len(where)
    return TaggedSentence(
        [row for found in tagged for row in found.rows],
        [tag for found in tagged for tag in found.tags],
        [each for found in tagged for each in found.probabilities],
        spans,
        line,
    )


def _whole_sentences(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut a stream at empty lines, into blocks of about BLOCK_BYTES."""
    pending: list[bytes] = []
    size = 0
    for block in blocks:
        pending.append(block)
        size += len(block)
        if size < BLOCK_BYTES:
            continue
        joined = b"".join(pending)
        cut = max(joined.rfind(b"\n\n") + 2, joined.rfind(b"\n\r\n") + 3)
        if cut > 2:
            yield joined[:cut]
            joined = joined[cut:]
        pending, size = [joined], len(joined)
    if joined := b"".join(pending):
        yield joined


def _with_tags(block: bytes, ends: NDArray[Any], ids: NDArray[Any]) -> bytes:
    """Append `ends[id]` to every line that is a token; the last of the ends is empty."""
    lines = block.split(b"\n")
    if any(each in block for each in UNUSUAL) or block[-1:] in (b" ", b"\t"):
        lines = [line.rstrip() if not line.isspace() else line for line in lines]
        tokens = [
            bool(line) and not line.isspace() and line.split(None, 1)[0] != DOCUMENT_START for line in lines
        ]
    else:
        tokens = list(map(bool, lines))
    chosen = np.full(len(lines), len(ends) - 1)
    chosen[np.array(tokens, np.bool_)] = ids
    parts = [b""] * (2 * len(lines))
    parts[::2], parts[1::2] = lines, (ends + b"\n")[chosen].tolist()
    return b"".join(parts)[:-1]
