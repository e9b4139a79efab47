"""Parsing with a model file."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tagsmith.cli.inputs import Rows
from tagsmith.cli.tagged import TaggedSentence
from tagsmith.core.model.parser import parse
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.model.use.text import TextSentence


def parsed(
    tagger: Tagger, sentences: Sequence[Any], rows: Sequence[Rows], *, probabilities: bool
) -> list[TaggedSentence]:
    """Parse sentences, which are shown as `rows`."""
    coded = tagger.code(sentences)
    found = parse(tagger, coded, probabilities=probabilities)
    relations = tagger.named(found.relations) if tagger.model.relations else []
    heads, arcs = found.heads.tolist(), found.arc_probabilities.tolist()
    certain = found.relation_probabilities.tolist()
    return [
        TaggedSentence(
            own,
            heads=heads[begin:end],
            relations=relations[begin:end],
            probabilities=arcs[begin:end],
            relation_probabilities=certain[begin:end],
        )
        for own, (begin, end) in zip(rows, pairwise(coded.offsets.tolist()), strict=True)
    ]


def parsed_texts(
    tagger: Tagger, lines: Sequence[str], sentences: Sequence[TextSentence], *, probabilities: bool
) -> list[TaggedSentence]:
    """Parse the sentences of lines of text. Heads are numbers of tokens of the line."""
    tokens = [sentence.tokens for sentence in sentences]
    rows = [[[token] for token in each] for each in tokens]
    made = [TaggedSentence([], text=line) for line in lines]
    trees = parsed(tagger, tokens, rows, probabilities=probabilities)
    for sentence, tree in zip(sentences, trees, strict=True):
        line = made[sentence.text]
        before = len(line.rows)
        made[sentence.text] = replace(
            line,
            rows=line.rows + tree.rows,
            heads=line.heads + [head + before if head else 0 for head in tree.heads],
            relations=line.relations + tree.relations,
            probabilities=line.probabilities + tree.probabilities,
            relation_probabilities=line.relation_probabilities + tree.relation_probabilities,
            sentences=line.sentences + ([(before, before + len(tree.rows))] if tree.rows else []),
        )
    return made
