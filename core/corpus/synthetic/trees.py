"""Generate English-like sentences with dependency trees, as CoNLL-U with the relations of Universal Dependencies.

Words, parts of speech and positions decide the heads: "of" and "about" belong to the noun before them, other
prepositions to the verb. Many words are nouns and verbs. On demand, a phrase of the subject follows the verb, so that
its arc crosses that of the verb: "The report appeared later about the market."
"""

from dataclasses import dataclass

from tagsmith.core.corpus.synthetic.stream import Stream
from tagsmith.core.corpus.synthetic.words import new_word, split_list, surname

_NOUNS = split_list(
    """
    report plan offer market price bank vote share order change story visit answer rise fall
    question garden river letter teacher village machine picture winter
    """
)
_VERBS = split_list(
    "report plan offer share order change visit answer question vote see find bring hear describe follow"
)
_MOVES = split_list("rise fall appear arrive end begin return wait vanish grow")
_ADJECTIVES = split_list("new old open long late strong quiet early bright small great")
_ADVERBS = split_list("later soon again often slowly today")
_OF_NOUNS = split_list("of about")
_OF_VERBS = split_list("in after near with before under")
_PAST = {
    "see": "saw", "find": "found", "bring": "brought", "hear": "heard", "rise": "rose", "fall": "fell",
    "begin": "began", "grow": "grew",
}  # fmt: skip
_SUBJECTS, _OBJECTS = split_list("he she it they"), split_list("him her it them")
_ROOT = 0


@dataclass(slots=True)
class _Word:
    """A word of a sentence. `head` is the number of another one, from 1."""

    form: str
    lemma: str
    tag: str
    features: str
    head: int
    relation: str


class _Sentence:
    """Builds one sentence. Words are numbered as they are added; a head that follows its words is set later."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.words: list[_Word] = []

    def add(
        self, form: str, tag: str, relation: str, head: int = _ROOT, *, lemma: str = "", features: str = "_"
    ) -> int:
        self.words.append(_Word(form, lemma or form, tag, features, head, relation))
        return len(self.words)

    def attach(self, words: list[int], head: int) -> None:
        for word in words:
            self.words[word - 1].head = head

    def nominal(self, relation: str, head: int = _ROOT, *, preposition: str | None = None) -> int:
        """Add a pronoun, a name, or a noun with what precedes it; return its number."""
        stream = self.stream
        before = [] if preposition is None else [self.add(preposition, "ADP", "case")]
        if preposition is None and stream.chance(0.15):
            return self.add(
                stream.pick(_SUBJECTS if relation == "nsubj" else _OBJECTS), "PRON", relation, head
            )
        if stream.chance(0.15):
            found = self.add(surname(stream), "PROPN", relation, head)
            self.attach(before, found)
            return found
        plural = stream.chance(0.3)
        if not plural or stream.chance(0.5):
            before.append(
                self.add(stream.pick(("the", "this") if not plural else ("the", "these")), "DET", "det")
            )
        if plural and stream.chance(0.2):
            before.append(self.add(str(stream.between(2, 99)), "NUM", "nummod"))
        while stream.chance(0.25):
            before.append(self.add(stream.favour(_ADJECTIVES), "ADJ", "amod"))
        if stream.chance(0.15):
            before.append(self.add(stream.favour(_NOUNS), "NOUN", "compound", features="Number=Sing"))
        lemma = stream.favour(_NOUNS) if stream.chance(0.9) else new_word(stream)
        features = f"Number={'Plur' if plural else 'Sing'}"
        found = self.add(lemma + "s" * plural, "NOUN", relation, head, lemma=lemma, features=features)
        self.attach(before, found)
        return found

    def phrases(self, noun: int, verb: int, probability: float) -> None:
        """Add phrases with prepositions. They belong to the noun or to the verb, whichever the preposition asks for."""
        while self.stream.chance(probability):
            if self.words[noun - 1].tag == "NOUN" and self.stream.chance(0.5):
                noun = self.nominal("nmod", noun, preposition=self.stream.pick(_OF_NOUNS))
            else:
                self.nominal("obl", verb, preposition=self.stream.pick(_OF_VERBS))
                return

    def clause(self, relation: str, head: int, crossing: float) -> int:
        """Add a clause; return the number of its verb."""
        stream = self.stream
        adverb = [self.add(stream.pick(_ADVERBS), "ADV", "advmod")] if stream.chance(0.1) else []
        subject = self.nominal("nsubj")
        inner = subject
        while self.words[inner - 1].tag == "NOUN" and stream.chance(0.15):
            inner = self.nominal("nmod", inner, preposition=stream.pick(_OF_NOUNS))
        late = self.words[subject - 1].tag == "NOUN" and inner == subject and stream.chance(crossing)
        auxiliary = (
            [self.add(stream.pick(("will", "may", "could")), "AUX", "aux")] if stream.chance(0.3) else []
        )
        moves = late or stream.chance(0.3)
        lemma = stream.favour(_MOVES if moves else _VERBS)
        form = lemma if auxiliary else _PAST.get(lemma, lemma.removesuffix("e") + "ed")
        verb = self.add(form, "VERB", relation, head, lemma=lemma)
        self.attach([*adverb, subject, *auxiliary], verb)
        if stream.chance(0.2):
            self.add(stream.pick(_ADVERBS), "ADV", "advmod", verb)
        if late:
            self.nominal("nmod", subject, preposition=stream.pick(_OF_NOUNS))
        elif moves:
            if stream.chance(0.5):
                self.nominal("obl", verb, preposition=stream.pick(_OF_VERBS))
        else:
            self.phrases(self.nominal("obj", verb), verb, 0.4)
        return verb

    def write(self, crossing: float) -> str:
        root = self.clause("root", _ROOT, crossing)
        if self.stream.chance(0.25):
            joint = [
                self.add(",", "PUNCT", "punct")
                if self.stream.chance(0.4)
                else self.add(self.stream.pick(("and", "but")), "CCONJ", "cc")
            ]
            self.attach(joint, self.clause("conj", root, crossing))
        self.add(".", "PUNCT", "punct", root)
        lines = [
            f"{number}\t{word.form}\t{word.lemma}\t{word.tag}\t_\t{word.features}\t{word.head}\t{word.relation}\t_\t_\n"
            for number, word in enumerate(self.words, start=1)
        ]
        return "".join(lines) + "\n"


def trees(stream: Stream, crossing: float = 0.0) -> str:
    """Return one sentence in CoNLL-U. `crossing` is the probability that a clause may have crossing arcs."""
    return _Sentence(stream).write(crossing)
