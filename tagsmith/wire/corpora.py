"""Corpora and their reports."""

from datetime import datetime
from typing import Any

from pydantic import Field

from tagsmith.wire.base import WireResponse


class CorpusInfo(WireResponse):
    """A stored corpus."""

    id: str
    name: str
    number: int = Field(
        description="Counts the uploads under one name, from 1: `name:2` refers to the second."
    )
    format: str
    options: dict[str, Any] = Field(description="Options of the format, defaults included.")
    sentences: int
    tokens: int
    columns: list[str] = Field(
        description="Names of the attribute columns, in the order of template numbers."
    )
    labels: list[str] = Field(description="Labels in order of first occurrence.")
    trees: bool = Field(default=False, description="Whether the words have heads and relations, not labels.")
    sha256: str = Field(description="Of the text after decompression.")
    size_bytes: int = Field(description="Of the text after decompression.")
    created_at: datetime


class MisplacedLabel(WireResponse):
    """A label that may not follow the one before it; sentence and token count from 0."""

    sentence: int
    token: int
    label: str
    previous: str | None = Field(description="Null at the start of a sentence.")


class TreeStatistics(WireResponse):
    """Counts over the dependency trees of a corpus."""

    relation_counts: dict[str, int]
    arc_lengths: dict[str, int] = Field(
        description="Number of arcs by the distance of their words. Arcs of roots are left out."
    )
    nonprojective_sentences: int = Field(description="Sentences with crossing arcs.")
    several_roots_sentences: int = Field(description="Sentences with more than one root.")


class CorpusStatistics(WireResponse):
    """Counts over one corpus."""

    sentences: int
    tokens: int
    label_counts: dict[str, int]
    length_histogram: dict[str, int] = Field(description="Number of sentences by length.")
    label_scheme: str | None = Field(
        description="IOB1, IOB2, BIOES, BILOU or BMES; null for plain classes and other schemes."
    )
    bio_fault_count: int
    bio_faults: list[MisplacedLabel] = Field(description="The first 100.")
    repaired_labels: int = Field(description="Number of labels that `repair` changed.")
    duplicate_sentences: int = Field(description="Sentences equal to an earlier one in every column.")
    conflicting_sentences: int = Field(
        description="Sentences equal to an earlier one except in their labels."
    )
    vocabulary_sizes: dict[str, int] = Field(description="Number of distinct values by column.")
    labelled_tokens: int | None = Field(
        default=None, description="Tokens with exactly one label. Null for corpora of earlier versions."
    )
    weighted_sentences: int = Field(default=0, description="Sentences with a weight other than 1.")
    trees: TreeStatistics | None = Field(default=None, description="Null for a corpus without trees.")


class CorpusSpan(WireResponse):
    """Tokens `start` to `stop` - 1 of a sentence, counted from 0."""

    type: str
    start: int
    stop: int


class CorpusSentence(WireResponse):
    """A sentence of a corpus; `index` counts from 0."""

    index: int
    length: int = Field(description="Tokens of the sentence. Of long sentences, the first 1,000 are listed.")
    tokens: list[str] = Field(description="The first column, or the first attribute of each token.")
    columns: list[list[str]] = Field(description="All columns, or all attributes, of each token.")
    labels: list[str] = Field(description="Empty for an unlabelled corpus.")
    spans: list[CorpusSpan]
    heads: list[int] = Field(
        default_factory=list,
        description="Number of the head of each token, from 1; 0 for a root. Empty for a corpus without trees.",
    )
    relations: list[str] = Field(default_factory=list, description="Relation of each token to its head.")


class CorpusInspection(WireResponse):
    """What an upload of a text would store."""

    format: str = Field(description="As given or recognised.")
    options: dict[str, Any] = Field(description="Options of the format, defaults included.")
    sentences: int
    tokens: int
    columns: list[str]
    labels: list[str]
    report: CorpusStatistics
    sample: list[CorpusSentence] = Field(description="The first sentences.")
    warnings: list[str] = Field(description="What is probably not as intended.")
