"""Responses of taggers: tags, text, spans, probabilities, explanations.

Values of tokens are stored in flat arrays, which are split into the entries of the response at the end (see `source`).
"""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tagsmith.app.tagging.answers import (
    Amount,
    Answer,
    check_scratch,
    column_text,
    cut,
    explained_tokens,
    tokens_of_texts,
)
from tagsmith.app.tagging.serving import Served
from tagsmith.app.tagging.source import Source, refused
from tagsmith.app.tagging.spans import entry_spans, sequences
from tagsmith.core.base.errors import Fault, TooLarge
from tagsmith.core.model.constraints import Constraints, allowed_by, infeasible
from tagsmith.core.model.decoding import Decoded, DecodingOptions, decode
from tagsmith.core.model.explanation import explain
from tagsmith.core.model.tagger import Coded, Tagger
from tagsmith.core.model.use.words import words_in
from tagsmith.wire import TagConstraints, TagRequest

#: Maximum work per response: tokens times labels times sequences. This takes one core some seconds.
MAX_CELLS = 5_000_000


def answer(served: Served, request: TagRequest) -> Answer:
    """Tag the input of a request and build the response."""
    if request.output == "conllu":
        raise refused("This model gives tags, not trees. For column text, send conll.", "/output")
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
    places = explained_tokens(request, bounds)
    decoded = _decoded(tagger, request, source, coded) if request.beyond else None
    tags = tagger.named(tagger.decode(coded) if decoded is None else decoded.labels)
    if request.text is not None:
        made |= _of_texts(request, source, coded, tags, bounds)
    if request.wants_tags:
        made["tags"] = cut(tags, bounds)
    if request.wants_spans:
        made["spans"] = _spans(tagger, source, coded, tags, decoded if request.marginals else None)
    if request.output == "conll":
        made["conll"] = column_text(source.tokens(bounds), cut(tags, bounds), source.name)
    if decoded is None:
        return made
    if request.probable and tagger.model.usage.calibrated is False:
        made["calibrated"] = False
    if request.marginals:
        made["probabilities"] = [float(np.prod(decoded.probabilities[a:b])) for a, b in pairwise(entries)]
        made["marginals"] = cut(decoded.marginals, bounds)
    if request.distributions:
        made["labels"] = tagger.labels
        made["distributions"] = cut(decoded.distributions, bounds)
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
    if not source.words:
        return tokens_of_texts(source, bounds)
    found = words_in(request.texts, source.sentences, cut(tags, coded.offsets.tolist()))
    words, offsets = [each.words for each in found], [each.offsets for each in found]
    made = {"words": words, "offsets": offsets, "sentences": source.sentence_ranges()}
    return {**made, "tokens": source.tokens(bounds)} if request.wants_tags else made


def _spans(
    tagger: Tagger, source: Source, coded: Coded, tags: list[str], decoded: Decoded | None
) -> list[list[dict[str, Any]]]:
    """Return the spans of each entry; with their probabilities if `decoded` has them."""
    bounds, labels = coded.offsets.tolist(), tagger.labels
    of_chains = cut(tags, bounds)
    probable = None if decoded is None else cut(decoded.span_probabilities, bounds)
    return [
        entry_spans(labels, source, entry, of_chains[a:b], None if probable is None else probable[a:b])
        for entry, (a, b) in enumerate(pairwise(source.entries))
    ]


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
