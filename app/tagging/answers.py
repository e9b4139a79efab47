"""Responses with more than the tags of sentences: text, spans, probabilities, explanations.

Values of tokens are stored in flat arrays, which are split into the entries of the response at the end (see `source`).
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.app.tagging.serving import Served
from tagsmith.app.tagging.source import Source, refused
from tagsmith.app.tagging.spans import entry_spans, sequences
from tagsmith.core.base.errors import Fault, FaultType, Invalid, TooLarge
from tagsmith.core.model.constraints import Constraints, allowed_by, infeasible
from tagsmith.core.model.decoding import Decoded, DecodingOptions, decode
from tagsmith.core.model.explanation import explain
from tagsmith.core.model.tagger import Coded, Tagger
from tagsmith.core.model.use.words import words_in
from tagsmith.wire import TagConstraints, TagRequest

#: Memory to decode one sentence. A sentence of a million tokens with 24 labels takes 100 MB.
MAX_SCRATCH_BYTES = 512 << 20
#: Maximum work per response: tokens times labels times sequences. This takes one core some seconds.
MAX_CELLS = 5_000_000
#: Maximum number of explained tokens per response. Each explanation is a page of names and numbers.
MAX_EXPLAINED = 1_000

_BLANK = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Amount:
    """The number of tagged sentences and tokens."""

    sentences: int = 0
    tokens: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.sentences + other.sentences, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request, and the amount of tagged input."""

    told: dict[str, Any]
    amount: Amount


def answer(served: Served, request: TagRequest) -> Answer:
    """Tag the input of a request and build the response."""
    source = Source.of(served.tagger, request)
    coded = served.tagger.code(source.chains)
    check_scratch(served.tagger, coded.longest, posterior=request.beyond or request.wants_spans)
    amount = Amount(len(source.chains), int(coded.offsets[-1]))
    return Answer(_told(served, request, source, coded), amount)


def _told(served: Served, request: TagRequest, source: Source, coded: Coded) -> dict[str, Any]:
    tagger = served.tagger
    entries = source.entries
    bounds = coded.offsets[entries].tolist()
    made: dict[str, Any] = {"model": served.target.model, "version": served.target.version}
    places = _explained(request, bounds)
    decoded = _decoded(tagger, request, source, coded) if request.beyond else None
    tags = tagger.named(tagger.decode(coded) if decoded is None else decoded.labels)
    if request.text is not None:
        made |= _of_texts(request, source, coded, tags, bounds)
    if request.wants_tags:
        made["tags"] = _cut(tags, bounds)
    if request.wants_spans:
        made["spans"] = _spans(tagger, source, coded, tags, decoded if request.marginals else None)
    if request.output == "conll":
        sentences = _cut(list(chain.from_iterable(source.chains)), bounds)
        made["conll"] = conll(sentences, _cut(tags, bounds), source.name)
    if decoded is None:
        return made
    if request.probable and tagger.model.usage.calibrated is False:
        made["calibrated"] = False
    if request.marginals:
        made["probabilities"] = [float(np.prod(decoded.probabilities[a:b])) for a, b in pairwise(entries)]
        made["marginals"] = _cut(decoded.marginals, bounds)
    if request.distributions:
        made["labels"] = tagger.labels
        made["distributions"] = _cut(decoded.distributions, bounds)
    if request.nbest > 1:
        made["nbest"] = list(sequences(tagger, source, coded, decoded, request))
    if request.explain is not False:
        made["explain"] = list(_explanations(tagger, coded, decoded, places, bounds))
    return made


def _decoded(tagger: Tagger, request: TagRequest, source: Source, coded: Coded) -> Decoded:
    wanted = DecodingOptions(
        nbest=request.nbest,
        posterior=request.decode == "posterior",
        probabilities=request.marginals,
        distributions=request.distributions or request.explain is not False,
        spans=request.marginals and request.wants_spans,
    )
    _check_size(tagger, wanted, request, int(coded.offsets[-1]))
    if request.text is not None and request.constraints is not None and request.constraints.tags is not None:
        raise refused("Tags can be fixed for tokens, not for text. Send sentences.", "/constraints/tags")
    allowed = None
    if request.constraints is not None:
        allowed = allowed_by(_constraints(request.constraints), tagger.labels, coded.offsets)
    decoded = decode(tagger, coded, wanted, allowed)
    if not decoded.feasible.all():
        entries = np.searchsorted(source.entries, np.flatnonzero(~decoded.feasible), side="right") - 1
        raise infeasible(np.unique(entries), source.name)
    return decoded


def _constraints(given: TagConstraints) -> Constraints:
    return Constraints(given.tags, given.forbid, given.valid)


def check_scratch(tagger: Tagger, longest: int, *, posterior: bool = False) -> None:
    """Raise TooLarge if a sentence is too long for the number of labels of a model."""
    if tagger.scratch_bytes(longest, posterior=posterior) > MAX_SCRATCH_BYTES:
        reason = (
            f"Tagging {longest:,} tokens with {len(tagger.labels):,} labels takes more than "
            f"{MAX_SCRATCH_BYTES >> 20} MiB. Send shorter sentences."
        )
        raise TooLarge(
            "A sentence is too long.", [Fault(reason, pointer="/sentences")], code="too_many_tokens"
        )


def _check_size(tagger: Tagger, wanted: DecodingOptions, request: TagRequest, tokens: int) -> None:
    for name, asked, lists in (
        ("nbest", wanted.nbest > 1, wanted.nbest),
        ("distributions", request.distributions, 1),
        ("explain", request.explain is not False, 1),
    ):
        cells = tokens * len(tagger.labels) * lists
        if asked and cells > MAX_CELLS:
            by = f"{tokens} tokens by {len(tagger.labels)} labels" + f" by {lists}" * (lists > 1)
            reason = f"{by} are {cells:,} numbers. Send at most {MAX_CELLS:,} per request."
            raise TooLarge(
                "The request is too large.", [Fault(reason, pointer=f"/{name}")], code="too_many_tokens"
            )


def _of_texts(
    request: TagRequest, source: Source, coded: Coded, tags: list[str], bounds: list[int]
) -> dict[str, Any]:
    """Return the words or tokens of each text, their offsets, and its sentences."""
    ranges = source.sentence_ranges()
    tokens = _cut(list(chain.from_iterable(source.chains)), bounds)
    if source.words:
        found = words_in(request.texts, source.sentences, _cut(tags, coded.offsets.tolist()))
        words, offsets = [each.words for each in found], [each.offsets for each in found]
        made = {"words": words, "offsets": offsets, "sentences": ranges}
        return {**made, "tokens": tokens} if request.wants_tags else made
    places = [place for each in source.sentences for place in zip(each.starts, each.stops, strict=True)]
    return {"tokens": tokens, "offsets": _cut(places, bounds), "sentences": ranges}


def _spans(
    tagger: Tagger, source: Source, coded: Coded, tags: list[str], decoded: Decoded | None
) -> list[list[dict[str, Any]]]:
    """Return the spans of each entry; with their probabilities if `decoded` has them."""
    bounds, labels = coded.offsets.tolist(), tagger.labels
    of_chains = _cut(tags, bounds)
    probable = None if decoded is None else _cut(decoded.span_probabilities, bounds)
    return [
        entry_spans(labels, source, entry, of_chains[a:b], None if probable is None else probable[a:b])
        for entry, (a, b) in enumerate(pairwise(source.entries))
    ]


def _explained(request: TagRequest, bounds: list[int]) -> list[tuple[int, int]]:
    """Return the tokens to explain, as (entry, token index in the entry)."""
    if request.explain is False:
        return []
    count = bounds[-1] if request.explain is True else len(request.explain)
    if count > MAX_EXPLAINED:
        fault = Fault(
            f"There are {count:,} tokens to explain. Explain at most {MAX_EXPLAINED:,} per request.",
            pointer="/explain",
        )
        raise TooLarge("The request is too large.", [fault], code="too_many_tokens")
    lengths = [end - begin for begin, end in pairwise(bounds)]
    if request.explain is True:
        return [(i, token) for i, length in enumerate(lengths) for token in range(length)]
    for number, (i, token) in enumerate(request.explain):
        if not (0 <= i < len(lengths) and 0 <= token < lengths[i]):
            reason = f"There is no token {token} in sentence {i}. Both count from 0."
            raise refused(reason, f"/explain/{number}", FaultType.OUT_OF_RANGE)
    return request.explain


def _explanations(
    tagger: Tagger, coded: Coded, decoded: Decoded, places: Sequence[tuple[int, int]], bounds: list[int]
) -> Iterator[dict[str, Any]]:
    flat = np.array([bounds[i] + token for i, token in places], np.int64)
    chains = np.searchsorted(coded.offsets, flat, side="right") - 1
    tokens = flat - coded.offsets[chains]
    of_chains = list(zip(chains.tolist(), tokens.tolist(), strict=True))
    found = explain(tagger, coded, decoded, of_chains)
    for (i, token), each in zip(places, found, strict=True):
        yield {**dataclasses.asdict(each), "sentence": i, "token": token}


def _cut(values: Sequence[Any] | NDArray[Any], bounds: Sequence[int]) -> list[Any]:
    return [values[begin:end] for begin, end in pairwise(bounds)]


def conll(sentences: Sequence[Sequence[Any]], tags: Sequence[Sequence[str]], name: str) -> str:
    """Format tagged sentences as column text. Raise Invalid for a token that it cannot hold."""
    lines: list[str] = []
    for i, (sentence, labels) in enumerate(zip(sentences, tags, strict=True)):
        for j, (token, label) in enumerate(zip(sentence, labels, strict=True)):
            columns = [token] if isinstance(token, str) else [] if isinstance(token, dict) else token
            if not columns or any(not column or _BLANK.search(column) for column in columns):
                fault = Fault(
                    "empty, with a blank or without columns, which column text cannot hold",
                    pointer=f"/{name}/{i}/{j}",
                )
                raise Invalid("A token cannot be written as conll.", [fault], code="unwritable_token")
            lines.append("\t".join([*columns, label]))
        lines.append("")
    return "\n".join(lines) + "\n" if lines else ""
