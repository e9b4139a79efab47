"""Generate labelled corpora from a seed. They are hard enough to be worth learning, and need no download.

`references` and `addresses` have three columns: token, coarse class and IOB2 label. Fields are missing, swapped or
without punctuation. `people` has token and label: names in running text. `chunks` has token, part of speech and label.
`segments` is segmented Chinese text. `trees` and `crossing-trees` are dependency trees in CoNLL-U, the second also with
crossing arcs. Many tokens are ambiguous: surnames are also towns, towns are also streets, page
numbers look like years. Many words are new.
"""

from collections.abc import Callable, Iterator

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.suggest import unknown
from tagsmith.core.corpus.synthetic.addresses import address
from tagsmith.core.corpus.synthetic.chunks import chunks
from tagsmith.core.corpus.synthetic.people import people
from tagsmith.core.corpus.synthetic.references import reference
from tagsmith.core.corpus.synthetic.segments import segments
from tagsmith.core.corpus.synthetic.stream import Stream
from tagsmith.core.corpus.synthetic.trees import trees

#: The probability of crossing arcs in a clause of `crossing-trees`. About one sentence in five then has some.
_CROSSING = 0.3

#: For each kind, a function that returns the text of one sentence.
_KINDS: dict[str, Callable[[Stream], str]] = {
    "references": lambda stream: reference(stream).conll(),
    "addresses": lambda stream: address(stream).conll(),
    "people": people,
    "chunks": chunks,
    "segments": segments,
    "trees": trees,
    "crossing-trees": lambda stream: trees(stream, crossing=_CROSSING),
}

#: Sentences per chunk.
_CHUNK_SENTENCES = 200


def known_kinds() -> tuple[str, ...]:
    """Return the kinds that `generate` accepts."""
    return tuple(_KINDS)


def generate(kind: str, sentences: int, seed: int) -> Iterator[bytes]:
    """Generate sentences of `kind` as chunks of text: columns, segmented text, or CoNLL-U for trees.

    Sentence i depends only on the seed and on i, so a longer corpus begins with the shorter one of the same seed.
    """
    make = _KINDS.get(kind)
    if make is None:
        raise Invalid(unknown("kind", kind, known_kinds()), [Fault("unknown kind")])
    if sentences < 0:
        raise Invalid("The number of sentences is negative. Use 0 or more.", [Fault("negative")])
    return _chunks(make, sentences, seed)


def _chunks(make: Callable[[Stream], str], sentences: int, seed: int) -> Iterator[bytes]:
    for begin in range(0, sentences, _CHUNK_SENTENCES):
        numbers = range(begin, min(begin + _CHUNK_SENTENCES, sentences))
        yield "".join(make(Stream(seed, number)) for number in numbers).encode()
