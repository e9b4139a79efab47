"""The examples of the page about formats are read and refused as it says."""

import io
import re
import zipfile
from dataclasses import replace
from functools import partial

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.conll import write_conll
from tagsmith.core.corpus.vocabulary import Vocabulary
from tests.docs.test_readme import ROOT

PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\S+)([^\n]*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

#: (format, words after it, text) and the block that follows.
EXAMPLES = [
    (name, said.split(), text, *after)
    for (name, said, text), after in zip(
        [block for block in BLOCKS if block[0] != "sh"][::2],
        [(block[0], block[2]) for block in BLOCKS if block[0] != "sh"][1::2],
        strict=True,
    )
]


def body(name: str, text: str) -> bytes:
    """An example as it would be uploaded."""
    if name != "brat":
        return text.encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for member in text.split("== ")[1:]:
            title, _, content = member.partition("\n")
            out.writestr(title, content)
    return file.getvalue()


def with_heads(corpus: Corpus) -> Corpus:
    """The corpus with its trees as columns."""
    if corpus.trees is None:
        return corpus
    numbers = Vocabulary.from_strings([str(number) for number in range(int(corpus.trees.heads.max()) + 1)])
    trees = Column("head", numbers, corpus.trees.heads), corpus.trees.relations
    return replace(corpus, columns=(*corpus.columns, *trees), trees=None)


def test_every_format_is_described_with_what_it_refuses() -> None:
    described = {name for name, words, *_ in EXAMPLES if "refused" in words}
    assert described == set(formats.known_formats())


@pytest.mark.parametrize(("name", "words", "text", "kind", "expected"), EXAMPLES)
def test_an_example_gives_what_the_page_shows(
    name: str, words: list[str], text: str, kind: str, expected: str
) -> None:
    options = dict(word.split("=") for word in words if "=" in word)
    read = partial(formats.read, [body(name, text)], name, max_line_bytes=1000, options=options)
    if "refused" not in words:
        assert kind == "conll"
        assert b"".join(write_conll(with_heads(read()))).decode().strip() == expected.strip()
        return
    assert kind == "text"
    with pytest.raises(Invalid) as caught:
        read()
    said = [f"line {fault.line}: {fault.reason}" for fault in caught.value.faults]
    assert said == expected.splitlines()


@pytest.mark.parametrize("name", formats.known_formats())
def test_every_option_is_named(name: str) -> None:
    section = PAGE.partition(f"## `{name}`")[2].partition("\n## ")[0]
    common = PAGE.partition("| option of every format")[2].partition("\n\n")[0]
    for option in formats.option_models()[name].model_fields:
        assert f"| `{option}` |" in section + common
