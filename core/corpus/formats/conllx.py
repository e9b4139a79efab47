"""`conllx`: CoNLL-X, the format of the shared tasks of 2006 and 2007. As CoNLL-U, with other fields and no comments."""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, field_validator

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.base import Format, Limits, option_error, split_names
from tagsmith.core.corpus.formats.conllu import (
    WordOptions,
    WordReader,
    has_word_lines,
    is_conllx,
    word_reader,
    word_writer,
)
from tagsmith.core.corpus.formats.scan.words import WordLines

CONLLX = WordLines(
    "CoNLL-X",
    ("id", "form", "lemma", "cpostag", "postag", "feats", "head", "deprel", "phead", "pdeprel"),
    comments=False,
)

#: The name of a feature.
_FEATURE = re.compile(r"[^\x00-\x20=|\x7f]+")


class ConllxOptions(WordOptions):
    """The fields to read or write, by name."""

    lines: ClassVar[WordLines] = CONLLX

    columns: Annotated[tuple[str, ...], BeforeValidator(split_names)] = Field(
        default=("form",),
        description=f"Fields that become columns, in this order: any of {', '.join(CONLLX.fields)}.",
    )
    label: str = Field(
        default="tree",
        validate_default=True,
        description="Field that holds the labels, not one of the columns; or `tree`: heads and relations are read.",
    )
    drop_feats: Annotated[tuple[str, ...], BeforeValidator(split_names)] = Field(
        default=("id",),
        description="Names of features to remove from the field feats. By default a number of the token, `id=7`.",
    )

    @field_validator("drop_feats")
    @classmethod
    def _features_have_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if names == ("",):
            return ()
        for name in names:
            if not _FEATURE.fullmatch(name):
                raise option_error(f"{name!r} is not the name of a feature")
        return names


def _reader(options: ConllxOptions, limits: Limits) -> WordReader:
    return word_reader(options, limits, options.drop_feats)


def _writer(corpus: Corpus, options: ConllxOptions) -> Iterator[bytes]:
    return word_writer(corpus, options)


FORMAT = Format(
    name="conllx",
    options=ConllxOptions,
    reader=_reader,
    writer=_writer,
    holds_trees=True,
    recognises=lambda head: has_word_lines(head) and is_conllx(head),
    reading_options=frozenset({"drop_feats"}),
    order=4,
)
