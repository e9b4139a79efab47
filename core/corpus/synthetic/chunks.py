"""Generate English-like sentences with parts of speech and chunks: noun, verb and prepositional phrases.

Many words are ambiguous: "plans", "rise" and "rates" are nouns and verbs. The tag column has errors, as the output of a
tagger has. Labels follow the phrases, so the words and tags around a token decide its chunk.
"""

from tagsmith.core.corpus.synthetic.stream import Stream
from tagsmith.core.corpus.synthetic.words import split_list, surname

_NOUNS = split_list(
    """
    market company bank price report plan rise rate share sale order trade cost demand stock profit loss
    debt fund vote group talk deal move growth export result week year month board
    """
)
_PLURALS = tuple(f"{noun}s" for noun in _NOUNS)
_ADJECTIVES = split_list(
    "new big strong weak recent third annual foreign current high low further late open average"
)
_PAST = split_list(
    "said reported planned rose fell sold ordered traded cost voted moved bought gained lost expected offered"
)
_BASE = split_list("report plan rise fall sell order trade cost vote move buy gain lose offer rate share")
_MODALS = split_list("will would may could should")
_PREPOSITIONS = split_list("of in on for with by from at after under about")
_DETERMINERS = split_list("the a this its another each")
_ADVERBS = split_list("sharply slowly also still again later nearly")
#: How often the tag of an ambiguous word is wrong, as in the output of a tagger.
_WRONG_TAGS = 0.03
_CONFUSED = {"NN": "VB", "VB": "NN", "NNS": "VBZ", "VBD": "VBN", "JJ": "NN"}


class _Sentence:
    """Builds one sentence."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.rows: list[tuple[str, str, str]] = []

    def chunk(self, label: str, *tokens: tuple[str, str]) -> None:
        for number, (word, tag) in enumerate(tokens):
            wrong = tag in _CONFUSED and self.stream.chance(_WRONG_TAGS)
            self.rows.append((word, _CONFUSED[tag] if wrong else tag, ("I-" if number else "B-") + label))

    def outside(self, word: str, tag: str) -> None:
        self.rows.append((word, tag, "O"))

    def noun_phrase(self) -> None:
        stream = self.stream
        if stream.chance(0.15):
            self.chunk("NP", (stream.pick(("he", "she", "it", "they")), "PRP"))
            return
        if stream.chance(0.15):
            self.chunk("NP", (surname(stream), "NNP"))
            return
        tokens = []
        if stream.chance(0.6):
            tokens.append((stream.pick(_DETERMINERS), "DT"))
        if stream.chance(0.15):
            tokens.append((str(stream.between(2, 99)), "CD"))
        while stream.chance(0.35):
            tokens.append((stream.favour(_ADJECTIVES), "JJ"))
        if stream.chance(0.3):
            tokens.append((stream.favour(_NOUNS), "NN"))
        plural = stream.chance(0.4)
        tokens.append((stream.favour(_PLURALS), "NNS") if plural else (stream.favour(_NOUNS), "NN"))
        self.chunk("NP", *tokens)

    def verb_phrase(self) -> None:
        stream = self.stream
        if stream.chance(0.35):
            tokens = [(stream.pick(_MODALS), "MD")]
            if stream.chance(0.2):
                tokens.append((stream.pick(("not", "n't")), "RB"))
            tokens.append((stream.favour(_BASE), "VB"))
        else:
            tokens = [(stream.favour(_PAST), "VBD")]
            if stream.chance(0.2):
                tokens += [("to", "TO"), (stream.favour(_BASE), "VB")]
        self.chunk("VP", *tokens)
        if stream.chance(0.15):
            self.chunk("ADVP", (stream.pick(_ADVERBS), "RB"))

    def write(self) -> str:
        stream = self.stream
        self.noun_phrase()
        self._prepositions(0.25)
        self.verb_phrase()
        if stream.chance(0.75):
            self.noun_phrase()
        self._prepositions(0.4)
        if stream.chance(0.25):
            self.outside(*stream.pick(((",", ","), ("and", "CC"))))
            self.noun_phrase()
            self.verb_phrase()
        self.outside(".", ".")
        return "".join(f"{word} {tag} {label}\n" for word, tag, label in self.rows) + "\n"

    def _prepositions(self, probability: float) -> None:
        while self.stream.chance(probability):
            self.chunk("PP", (self.stream.pick(_PREPOSITIONS), "IN"))
            self.noun_phrase()


def chunks(stream: Stream) -> str:
    """Return one sentence as column text: token, part of speech and label."""
    return _Sentence(stream).write()
