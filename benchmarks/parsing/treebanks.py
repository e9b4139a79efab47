"""The treebanks of `../shared/data`, as corpora and as the CoNLL-U text that UDPipe reads.

Treebanks without a development file hold out every tenth training sentence. Of Slovene and Japanese only the
development and the test file could be had: the one with more tokens is for training, the other one is the test set.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks import common
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry
from tagsmith.core.evaluate.trees import usable_relations

MAX_LINE_BYTES = 1 << 20
#: Every how many training sentences one is held out where there is no development file.
HELD_OUT = 10
#: The columns that both parsers get.
COLUMNS = {
    "conllu": ("form", "lemma", "upos", "feats"),
    "conllx": ("form", "lemma", "cpostag", "postag", "feats"),
}
#: The place of each column in a line of CoNLL-U. `cpostag` and `postag` are what CoNLL-U calls `upos` and `xpos`.
_PLACES = {"form": 1, "lemma": 2, "upos": 3, "cpostag": 3, "postag": 4, "feats": 5}
_EMPTY = "_"


@dataclass(frozen=True)
class Treebank:
    """The parts of a treebank. `train` is without the sentences of `dev`, which `whole` may have."""

    name: str
    train: Corpus
    dev: Corpus
    whole: Corpus
    test: Corpus

    @property
    def relations(self) -> bool:
        """Whether relations can be learned and scored."""
        return usable(self.whole)

    @property
    def single_root(self) -> bool:
        """Whether every sentence has one root."""
        return roots_are_single(self.whole)


def usable(corpus: Corpus) -> bool:
    assert corpus.trees is not None
    return usable_relations(corpus.trees.relations)


def roots_are_single(corpus: Corpus) -> bool:
    assert corpus.trees is not None
    roots = np.concatenate([np.zeros(1, np.int64), np.cumsum(corpus.trees.heads == 0)])
    return bool((np.diff(roots[corpus.offsets]) == 1).all())


def of_lines(raw: bytes, fields: str) -> Corpus:
    """Read trees in `conllu` or `conllx`."""
    options = {"columns": ",".join(COLUMNS[fields]), "label": "tree"}
    return registry.read([raw], fields, max_line_bytes=MAX_LINE_BYTES, options=options)


def with_held_out(name: str, whole: Corpus, test: Corpus) -> Treebank:
    """Hold out every tenth training sentence."""
    numbers = np.arange(whole.sentences)
    held_out = numbers % HELD_OUT == HELD_OUT - 1
    return Treebank(name, whole.subset(numbers[~held_out]), whole.subset(numbers[held_out]), whole, test)


def english(data: Path) -> Treebank:
    """UD English EWT."""
    train, dev, test = (
        of_lines(common.read(data / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu"), "conllu")
        for part in ("train", "dev", "test")
    )
    return Treebank("english", train, dev, train, test)


def danish(data: Path) -> Treebank:
    """The Copenhagen treebank."""
    train, test = (
        of_lines(common.read(data / "trees" / f"danish.{part}.conll"), "conllx") for part in ("train", "test")
    )
    return with_held_out("danish", train, test)


def turkish(data: Path) -> Treebank:
    """UD Turkish."""
    train, dev, test = (
        of_lines(common.read(data / "trees" / f"turkish.{part}.conllu"), "conllu")
        for part in ("train", "dev", "test")
    )
    return Treebank("turkish", train, dev, train, test)


def spanish(data: Path) -> Treebank:
    """CoNLL-2007 in the format of CoNLL-X."""
    train, test = (
        of_lines(common.read(data / "conll2007" / f"esp.{part}"), "conllx") for part in ("train", "test")
    )
    return with_held_out("spanish", train, test)


def _small(name: str) -> Callable[[Path], Treebank]:
    def treebank(data: Path) -> Treebank:
        parts = (
            of_lines(common.read(data / "trees" / f"{name}.{part}.conllu"), "conllu")
            for part in ("dev", "test")
        )
        smaller, larger = sorted(parts, key=lambda corpus: corpus.tokens)
        return with_held_out(name, larger, smaller)

    return treebank


TREEBANKS: dict[str, Callable[[Path], Treebank]] = {
    "english": english,
    "danish": danish,
    "turkish": turkish,
    "spanish": spanish,
    "slovene": _small("slovene"),
    "japanese": _small("japanese"),
}


def rows_of(corpus: Corpus) -> list[list[list[str]]]:
    """Return the columns of each token, by sentence: what `Tagger.parse` takes."""
    columns = [[column.vocabulary[i] for i in column.ids.tolist()] for column in corpus.columns]
    tokens = [list(row) for row in zip(*columns, strict=True)]
    return [tokens[begin:end] for begin, end in pairwise(corpus.offsets.tolist())]


def conllu_of(corpus: Corpus) -> str:
    """Write a corpus for UDPipe.

    UDPipe wants the relation `root` at single roots, and there alone. Relations that are unusable become `dep`.
    """
    return "".join(_sentences(corpus))


def _sentences(corpus: Corpus) -> Iterator[str]:
    assert corpus.trees is not None
    heads = corpus.trees.heads.tolist()
    named, single = usable(corpus), roots_are_single(corpus)
    names, ids = corpus.trees.relations.vocabulary.strings(), corpus.trees.relations.ids.tolist()
    places = [_PLACES[column.name] for column in corpus.columns]
    for sentence, begin in zip(rows_of(corpus), corpus.offsets.tolist(), strict=False):
        for i, row in enumerate(sentence):
            fields = [str(i + 1), *[_EMPTY] * 9]
            for place, value in zip(places, row, strict=True):
                fields[place] = value
            head = heads[begin + i]
            relation = names[ids[begin + i]] if named else "dep"
            fields[6], fields[7] = str(head), "root" if head == 0 and single else relation
            yield "\t".join(fields) + "\n"
        yield "\n"
