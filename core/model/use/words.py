"""The words of texts whose tokens are characters."""

from collections.abc import Sequence
from dataclasses import dataclass

from tagsmith.core.corpus.labels.segmentation import is_coding, words_of
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tagsmith.core.model.use.text import TextSentence


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, with the start and stop offset of each."""

    words: list[str]
    offsets: list[tuple[int, int]]


def joins_words(tokenizer: Tokenizer, labels: Sequence[str]) -> bool:
    """Whether tokens are characters that the labels join into words."""
    return tokenizer.kind == "characters" and is_coding(labels)


def words_in(
    texts: Sequence[str], sentences: Sequence[TextSentence], tags: Sequence[Sequence[str]]
) -> list[Words]:
    """Return the words of each text whose tokens are characters. Whitespace always ends a word."""
    made = [Words([], []) for _ in texts]
    for sentence, labels in zip(sentences, tags, strict=True):
        for word in words_of(labels):
            start = word.start
            for at in range(word.start + 1, word.stop + 1):
                if at == word.stop or sentence.starts[at] != sentence.stops[at - 1]:
                    begin, end = sentence.starts[start], sentence.stops[at - 1]
                    made[sentence.text].words.append(texts[sentence.text][begin:end])
                    made[sentence.text].offsets.append((begin, end))
                    start = at
    return made
