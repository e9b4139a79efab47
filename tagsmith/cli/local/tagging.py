"""`tagsmith tag --local`: a model file as an engine.

Columns go from bytes to bytes: the readers of corpora number the values, the kernels decode all sentences of a block,
and each line gets its tag. No step works on single sentences.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.cli.errors import CommandError
from tagsmith.cli.inputs import Rows
from tagsmith.cli.local import parsing, reading
from tagsmith.cli.recognition import ModelInput
from tagsmith.cli.tagged import LabelledSpan, TaggedSentence, tree_of
from tagsmith.core.base.errors import Fault, Invalid, TagsmithError
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.recognition import HEAD_BYTES
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tagsmith.core.evaluate.spans import spans_of
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.model.use.text import TextSpan, sentences_of, spans_in, tokenizer_of
from tagsmith.core.model.use.words import joins_words, words_in
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
    tokenizer: Tokenizer | None = None
    with_probabilities: bool = False

    @classmethod
    def open(cls, path: Path) -> "LocalEngine":
        """Open a model file."""
        return cls(reading.tagger_of(path))

    @property
    def model_input(self) -> ModelInput:
        """What the model takes."""
        columns, names = self.tagger.columns, self.tagger.model.usage.columns
        characters = columns == 1 and tokenizer_of(self.tagger).kind == "characters"
        return ModelInput(columns, characters, names, parses=self.parses)

    @property
    def parses(self) -> bool:
        """Whether the model gives trees."""
        return self.tagger.is_parser

    def with_plan(self, plan: "TagPlan") -> "LocalEngine":
        """Return the engine with the options of a command."""
        try:
            tokenizer = None if plan.tokenizer is None else Tokenizer.of(plan.tokenizer)
        except ValueError as error:
            raise CommandError(f"There is no tokenizer {plan.tokenizer}. {error}") from None
        return replace(
            self,
            tokenizer=tokenizer,
            with_probabilities=plan.with_probabilities,
        )

    def tag_columns(self, blocks: Iterable[bytes], target: IO[bytes], *, with_probabilities: bool) -> None:
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
                        pool.submit(self._tagged_block, block, before, with_probabilities=with_probabilities)
                    )
                    before += block.count(b"\n")
                    if len(pending) > threads:
                        target.write(pending.popleft().result())
                while pending:
                    target.write(pending.popleft().result())
            finally:
                for each in pending:
                    each.cancel()

    def _tagged_block(self, block: bytes, before: int, *, with_probabilities: bool) -> bytes:
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
        if len(corpus.columns) < self.tagger.columns:
            fault = Fault(f"has {len(corpus.columns)} columns", line=before + 1)
            raise Invalid(
                f"The model needs {self.tagger.columns} columns per token.", [fault], code="missing_column"
            )
        separator = b"\t" if b"\t" in block[:HEAD_BYTES] else b" "
        ends = np.array([*(separator + label.encode() for label in self.tagger.labels), b""], object)
        if not with_probabilities:
            return _with_tags(block, ends, finished(predicted_labels(self.tagger, corpus)))
        found = decode(self.tagger, self.tagger.code_corpus(corpus), DecodingOptions(probabilities=True))
        numbers = np.array([*(separator + b"%.4f" % each for each in found.marginals.tolist()), b""], object)
        both = np.append(ends[found.labels] + numbers[:-1], b"")
        return _with_tags(block, both, np.arange(corpus.tokens))

    def rows(self, sentences: list[Rows]) -> list[TaggedSentence]:
        """Tag sentences of columns."""
        if self.parses:
            return parsing.parsed(self.tagger, sentences, sentences, probabilities=self.with_probabilities)
        return [
            TaggedSentence(rows, found.tags, found.marginals, self._spans(rows, found))
            for rows, found in zip(sentences, self._decoded(sentences), strict=True)
        ]

    def text(self, lines: list[str]) -> list[TaggedSentence]:
        """Tag lines of text. A line may have several sentences; its entry has the tokens of all."""
        tokenizer = self.text_tokenizer()
        sentences = sentences_of(lines, tokenizer)
        if self.parses:
            return parsing.parsed_texts(self.tagger, lines, sentences, probabilities=self.with_probabilities)
        decoded = self._decoded([sentence.tokens for sentence in sentences])
        made = [TaggedSentence([], text=line) for line in lines]
        for sentence, found in zip(sentences, decoded, strict=True):
            line = made[sentence.text]
            spans = spans_in(
                lines[sentence.text],
                sentence,
                found.tags,
                self.tagger.labels,
                len(line.tags),
                found.span_probabilities,
            )
            line.spans.extend(self._labelled(span) for span in spans)
            line.rows.extend([token] for token in sentence.tokens)
            line.tags.extend(found.tags)
            line.probabilities.extend(found.marginals)
        if joins_words(tokenizer, self.tagger.labels):
            found_words = words_in(lines, sentences, [each.tags for each in decoded])
            made = [replace(line, words=each.words) for line, each in zip(made, found_words, strict=True)]
        return made

    def objects(self, objects: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Tag the objects of NDJSON. The entry of an invalid one is an error, as in the API."""
        for number, value in enumerate(objects, start=1):
            made: dict[str, Any] = {"line": number} | ({"id": value["id"]} if "id" in value else {})
            try:
                yield made | self._object(value)
            except TagsmithError as error:
                yield made | {"error": {"code": error.code, "detail": error.message}}

    def text_tokenizer(self) -> Tokenizer:
        """Return the tokenizer for text: the chosen one, else that of the model. Raise Invalid without text."""
        try:
            return tokenizer_of(self.tagger, self.tokenizer)
        except Invalid as error:
            raise Invalid(f"{error.message} Only models of words take text.", code=error.code) from None

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        if "tokens" in value:
            tokens = _checked(value["tokens"])
            if self.parses:
                return self._tree(self.rows([tokens])[0])
            (found,) = self._decoded([tokens])
            spans = self._spans([_row(token) for token in tokens], found)
            made: dict[str, Any] = {"tags": found.tags}
            marginals = found.marginals
        elif isinstance(value["text"], str):
            (line,) = self.text([value["text"]])
            if self.parses:
                return {"tokens": [row[0] for row in line.rows]} | self._tree(line)
            made = {"words": line.words} if line.words else {}
            made |= {"tokens": [row[0] for row in line.rows], "tags": line.tags}
            spans, marginals = line.spans, line.probabilities
        else:
            raise Invalid("The text is not a string.", code="invalid_request")
        made["spans"] = [span.as_dict() for span in spans]
        return made | ({"marginals": [round(each, 4) for each in marginals]} if marginals else {})

    def _tree(self, sentence: TaggedSentence) -> dict[str, Any]:
        """Return a tree as the API does."""
        found = {"marginals": sentence.probabilities, "relation_marginals": sentence.relation_probabilities}
        return tree_of(sentence) | {
            name: [round(each, 4) for each in values] for name, values in found.items() if values
        }

    def _decoded(self, sentences: Sequence[Any]) -> list["_Decoded"]:
        coded = self.tagger.code(sentences)
        if self.with_probabilities:
            decoded = decode(self.tagger, coded, DecodingOptions(probabilities=True, spans=True))
            ids, marginals = decoded.labels, decoded.marginals.tolist()
            span_probabilities = decoded.span_probabilities
        else:
            ids, marginals = self.tagger.decode(coded), []
            span_probabilities = np.zeros(coded.offsets[-1])
        tags = self.tagger.named(ids)
        return [
            _Decoded(tags[begin:end], marginals[begin:end], span_probabilities[begin:end])
            for begin, end in pairwise(coded.offsets.tolist())
        ]

    def _spans(self, rows: Rows, found: "_Decoded") -> list[LabelledSpan]:
        """Return the spans of a sentence of columns. Their text has blanks between the tokens."""
        return [
            LabelledSpan(
                span.type,
                span.start,
                span.stop,
                " ".join(row[0] for row in rows[span.start : span.stop]),
                probability=float(found.span_probabilities[span.start]) if self.with_probabilities else None,
            )
            for span in spans_of(found.tags, self.tagger.labels)
        ]

    def _labelled(self, span: TextSpan) -> LabelledSpan:
        probability = span.probability if self.with_probabilities else None
        return LabelledSpan(span.type, span.start, span.stop, span.text, span.begin, span.end, probability)


class _Decoded(NamedTuple):
    """One sentence. Without probabilities, `marginals` is empty and `span_probabilities` has zeros."""

    tags: list[str]
    marginals: list[float]
    #: The probability of each span at its first token.
    span_probabilities: NDArray[np.float64]


def _checked(tokens: Any) -> list[Any]:
    """Return the tokens of an object, or raise Invalid if they are not tokens of one kind."""
    if isinstance(tokens, list):
        kinds = set(map(type, tokens))
        if kinds <= {str} or kinds == {dict}:
            return tokens
        if kinds == {list} and {type(each) for token in tokens for each in token} <= {str}:
            return tokens
    raise Invalid("Tokens are a list of strings, of lists of strings or of objects.", code="invalid_request")


def _row(token: Any) -> list[str]:
    """Return a token as a row. An object is shown by its first value."""
    if isinstance(token, str):
        return [token]
    return [str(next(iter(token.values()), ""))] if isinstance(token, dict) else token


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
        lines = [line.rstrip(b"\r") if line.isspace() else line.rstrip() for line in lines]
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
