"""Labelled corpora made up from a seed: hard enough to be worth learning, and nothing to download.

Token, coarse class and IOB2 label, as column text. Fields go missing, change places and lose their punctuation;
surnames are towns, towns are streets, page numbers are years; a good part of the words are coined on the spot.
"""

from collections.abc import Callable, Iterator

from core.corpus.synthetic.addresses import address
from core.corpus.synthetic.line import Line
from core.corpus.synthetic.references import reference
from core.corpus.synthetic.stream import Stream
from core.errors import Fault, Invalid

_KINDS: dict[str, Callable[[Stream], Line]] = {"references": reference, "addresses": address}

#: Sentences joined into one chunk of bytes.
_CHUNK_SENTENCES = 200


def known_kinds() -> tuple[str, ...]:
    """Names `generate` accepts."""
    return tuple(_KINDS)


def generate(kind: str, sentences: int, seed: int) -> Iterator[bytes]:
    """`sentences` sentences of `kind`.

    Sentence i depends on the seed and i alone: a longer corpus begins with the shorter one of the same seed.
    """
    make = _KINDS.get(kind)
    if make is None:
        known = ", ".join(known_kinds())
        raise Invalid(f"There is no corpus of kind {kind!r}; known: {known}.", [Fault("unknown kind")])
    if sentences < 0:
        raise Invalid("The number of sentences must not be negative.", [Fault("negative")])
    return _chunks(make, sentences, seed)


def _chunks(make: Callable[[Stream], Line], sentences: int, seed: int) -> Iterator[bytes]:
    for begin in range(0, sentences, _CHUNK_SENTENCES):
        numbers = range(begin, min(begin + _CHUNK_SENTENCES, sentences))
        yield "".join(make(Stream(seed, number)).conll() for number in numbers).encode()
