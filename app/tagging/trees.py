"""Responses of parsers: heads and relations, their probabilities, CoNLL-U, explanations of arcs.

Heads count the tokens of an entry from 1. So in a text of several sentences, too, a head is the index of a token. In
CoNLL-U and in column text, which have the sentences apart, they count within the sentence.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.app.tagging.answers import (
    Amount,
    Answer,
    check_scratch,
    column_text,
    cut,
    explained_tokens,
    parts_of,
    tokens_of_texts,
    unwritable,
)
from tagsmith.app.tagging.serving import Served
from tagsmith.app.tagging.source import Source, refused
from tagsmith.core.base.errors import Fault, Invalid, TooLarge
from tagsmith.core.corpus.formats.scan import fields as word_fields
from tagsmith.core.model.parser import Parsed, parse
from tagsmith.core.model.parsing.explanation import explain_arcs, in_entry
from tagsmith.core.model.tagger import Tagger
from tagsmith.wire import TagRequest

#: Maximum work per response, in seconds of one core. All pairs of words of a sentence are scored. The best tree of `n`
#: words, and probabilities, take up to n^3 steps.
MAX_WORK_S = 10.0
PAIR_S, STEP_S, PROBABLE_STEP_S = 5e-7, 6e-10, 3e-9

_OUTPUT = "A parser gives heads and relations, not spans. Send tags, conll or conllu."
_DECODE = "A parser gives the most probable tree only. Leave `decode` out."
_DISTRIBUTIONS = (
    "A parser gives no probabilities of all heads. Send `marginals`, or `explain` for some words."
)
_NBEST = "A parser gives the best tree only. Leave `nbest` out."
_CONSTRAINTS = "The trees of a parser cannot be constrained. Leave `constraints` out."


def answer(served: Served, request: TagRequest) -> Answer:
    """Parse the input of a request and build the response."""
    _check_options(request)
    source = Source.of(served.tagger, request)
    probable = request.marginals or request.explain is not False
    _check_size(served.tagger, source, probable=probable)
    found = _Trees.of(served.tagger, source, probabilities=request.marginals)
    told = _told(served, request, source, found)
    return Answer(told, Amount(len(source.chains), int(found.offsets[-1])))


def _check_options(request: TagRequest) -> None:
    """Raise Invalid for what only taggers can do."""
    for name, wanted, reason in (
        ("output", request.wants_spans, _OUTPUT),
        ("decode", request.decode != "viterbi", _DECODE),
        ("distributions", request.distributions, _DISTRIBUTIONS),
        ("nbest", request.nbest > 1, _NBEST),
        ("constraints", request.constraints is not None, _CONSTRAINTS),
    ):
        if wanted:
            raise refused(reason, f"/{name}")


def _check_size(tagger: Tagger, source: Source, *, probable: bool) -> None:
    """Raise TooLarge for what would take too much memory or time."""
    lengths = np.array([len(each) for each in source.chains], np.float64)
    check_scratch(tagger, int(lengths.max(initial=0)), posterior=probable)
    steps = float((lengths**3).sum()) * (PROBABLE_STEP_S if probable else STEP_S)
    work_s = float((lengths**2).sum()) * PAIR_S + steps
    if work_s <= MAX_WORK_S:
        return
    reason = (
        f"To parse these sentences takes about {work_s:,.0f} seconds of one core, and a request may take "
        f"{MAX_WORK_S:,.0f}. Send fewer or shorter sentences, or parse a corpus with a job of kind tag."
    )
    fault = Fault(reason, pointer=f"/{source.name}")
    raise TooLarge("The request is too large.", [fault], code="too_many_tokens")


@dataclass(frozen=True, slots=True)
class _Trees:
    """The trees of all sentences. Arrays over tokens are flat."""

    offsets: NDArray[np.int64]
    heads: NDArray[np.int32]  # within the sentence
    relations: list[str] | None
    arc_probabilities: NDArray[np.float64]
    relation_probabilities: NDArray[np.float64]
    log_probabilities: NDArray[np.float64]  # (sentences,)

    @classmethod
    def of(cls, tagger: Tagger, source: Source, *, probabilities: bool) -> "_Trees":
        """Parse all sentences, in parts: other requests are answered in between."""
        parts: list[Parsed] = []
        for part in parts_of(source.chains):
            try:
                coded = tagger.code(part)
            except Invalid:
                tagger.code(source.chains)  # raises again, with places in the whole request
                raise
            parts.append(parse(tagger, coded, probabilities=probabilities))
        lengths = np.array([0, *map(len, source.chains)], np.int64)

        def joined(name: str) -> NDArray[Any]:
            arrays = [getattr(part, name) for part in parts]
            return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

        relations = joined("relations")
        return cls(
            np.cumsum(lengths),
            joined("heads"),
            tagger.named(relations) if tagger.model.relations else None,
            joined("arc_probabilities"),
            joined("relation_probabilities"),
            joined("log_probabilities"),
        )

    def heads_in(self, source: Source) -> NDArray[np.int32]:
        """Return the heads as numbers of tokens of their entry."""
        if not source.sentences:
            return self.heads
        starts = self.offsets[:-1] - np.repeat(self.offsets[source.entries[:-1]], np.diff(source.entries))
        shifts = np.repeat(starts, np.diff(self.offsets))
        return np.where(self.heads > 0, self.heads + shifts, 0).astype(np.int32)


def _told(served: Served, request: TagRequest, source: Source, found: _Trees) -> dict[str, Any]:
    tagger, entries = served.tagger, source.entries
    bounds = found.offsets[entries].tolist()
    made: dict[str, Any] = {"model": served.target.model, "version": served.target.version}
    places = explained_tokens(request, bounds)
    if request.text is not None:
        made |= tokens_of_texts(source, bounds)
    if request.output == "tags":
        made["heads"] = cut(found.heads_in(source), bounds)
        if found.relations is not None:
            made["relations"] = cut(found.relations, bounds)
    elif request.output == "conll":
        made["conll"] = _conll(source, found)
    else:
        made["conllu"] = _conllu(tagger, source, found)
    if request.probable and tagger.model.usage.calibrated is False:
        made["calibrated"] = False
    if request.marginals:
        logs = found.log_probabilities
        made["probabilities"] = [float(np.exp(logs[a:b].sum())) for a, b in pairwise(entries)]
        made["marginals"] = cut(found.arc_probabilities, bounds)
        if found.relations is not None:
            made["relation_marginals"] = cut(found.relation_probabilities, bounds)
    if request.explain is not False:
        made["arcs"] = _explanations(tagger, source, found, places)
    return made


def _conll(source: Source, found: _Trees) -> str:
    bounds = found.offsets.tolist()
    ends = list(map(str, found.heads.tolist()))
    if found.relations is not None:
        ends = [f"{head}\t{relation}" for head, relation in zip(ends, found.relations, strict=True)]
    return column_text(source.tokens(bounds), cut(ends, bounds), source.name)


def _conllu(tagger: Tagger, source: Source, found: _Trees) -> str:
    """Write CoNLL-U. Raise Invalid for a token that it cannot hold."""
    columns = tagger.model.usage.columns or ("form",)
    places = word_fields.places_of(columns)
    heads, relations = iter(found.heads.tolist()), iter(found.relations or ())
    parts = []
    for i, sentence in enumerate(source.chains):
        rows = [[token] if isinstance(token, str) else token for token in sentence]
        for fields in word_fields.sentence_lines(rows, places):
            fields[word_fields.HEAD] = str(next(heads))
            fields[word_fields.DEPREL] = next(relations, word_fields.EMPTY)
            if not all(word_fields.is_writable(value, place) for place, value in enumerate(fields)):
                raise unwritable("conllu", f"/{source.name}/{i}/{int(fields[0]) - 1}")
            parts.append("\t".join(fields))
        if rows:
            parts.append("")
    return "\n".join(parts) + "\n" if parts else ""


def _explanations(
    tagger: Tagger, source: Source, found: _Trees, places: Sequence[tuple[int, int]]
) -> list[dict[str, Any]]:
    """Explain the arcs of tokens, given as (entry, token index in the entry)."""
    starts = found.offsets[source.entries]
    flat = np.array([starts[i] + token for i, token in places], np.int64)
    chains = np.searchsorted(found.offsets, flat, side="right") - 1
    # Sentence by sentence: the probabilities of all its arcs are computed once.
    order = np.argsort(chains, kind="stable").tolist()
    used, numbers = np.unique(chains, return_inverse=True)
    coded = tagger.code([source.chains[i] for i in used.tolist()])
    wanted = [(int(numbers[k]), int(flat[k] - found.offsets[chains[k]])) for k in order]
    explained = explain_arcs(tagger, coded, parse(tagger, coded), wanted)
    made: list[dict[str, Any]] = [{}] * len(places)
    for k, each in zip(order, explained, strict=True):
        i, token = places[k]
        before = int(found.offsets[chains[k]] - starts[i])
        made[k] = asdict(in_entry(each, before)) | {"sentence": i, "token": token}
    return made
