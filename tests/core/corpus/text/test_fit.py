"""Which tokenizer suits a corpus, and what training warns of."""

from dataclasses import replace

import pytest

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.text.fit import fit_of, suitable
from tagsmith.core.corpus.text.tokenizer import Tokenizer


def corpus(*sentences: str, label: str = "O") -> Corpus:
    text = "\n\n".join("\n".join(f"{token} {label}" for token in each.split(" ")) for each in sentences)
    return read_conll([text.encode() + b"\n"], max_line_bytes=1000)


NEWS = "Mr. O'Brien of the U.S. paid $ 1,234.56 on 2026-11-18 , he said ."


def test_news_suits_words() -> None:
    fit = suitable(corpus(NEWS))
    assert (fit.tokenizer, fit.share, fit.examples, fit.warning()) == (Tokenizer(), 1.0, (), None)


def test_a_corpus_that_splits_parts_of_words_gets_a_tokenizer_that_does() -> None:
    fit = suitable(corpus(*["Ada 's firm did n't pay"] * 3))
    assert fit.tokenizer == Tokenizer(clitics=("'s", "n't"))
    # As in Dutch: 's is a word, and more often a part of one.
    assert suitable(corpus(*["'s avonds foto's auto's"] * 3)).tokenizer == Tokenizer()


def test_words_with_their_punctuation_suit_blanks() -> None:
    fit = suitable(corpus("Smith, J., 2001. Title, of. Book, 5:3."))
    assert (fit.tokenizer, fit.share) == (Tokenizer("blanks", sentences="lines"), 1.0)


@pytest.mark.parametrize("label", ["B", "O"])
def test_letters_of_scripts_without_spaces_suit_characters(label: str) -> None:
    assert suitable(corpus("共 同 创 造 2 0", label=label)).tokenizer == Tokenizer("characters")


def test_the_tokenizer_of_the_upload_is_used_and_checked() -> None:
    given = replace(corpus("key=value a,b c"), tokenizer=Tokenizer())
    fit = suitable(given)
    assert (fit.tokenizer, fit.share) == (Tokenizer(), pytest.approx(1 / 3))
    assert fit.examples == (("key=value", ("key", "=", "value")), ("a,b", ("a", ",", "b")))
    warning = fit.warning()
    assert warning is not None
    assert "66.7 %" in warning
    assert "'a,b' becomes 'a' ',' 'b'" in warning


def test_a_token_across_which_another_reaches_is_not_the_same() -> None:
    pattern = Tokenizer.of({"pattern": r"\w+ \w+|\w+"})
    assert fit_of(pattern, corpus("New York is")).examples == (
        ("New", ("New York",)),
        ("York", ("New York",)),
    )


def test_sequences_with_stops_inside_are_split_at_line_breaks_only() -> None:
    reference = "Smith , J. 2001 . Title of it . Oxford Press ."
    tokenizer = suitable(corpus(*[reference] * 3)).tokenizer
    assert tokenizer.sentences == "lines"
    assert Tokenizer.of(tokenizer.record()) == tokenizer
    text = "Smith, J. 2001. Title of it. Oxford Press.\nBrown, A. 1999. Another. Yale."
    assert len(tokenizer.split(text).ends) == 2
    assert len(Tokenizer().split(text).ends) > 2


def test_sentences_are_split_by_rules_although_some_sequences_have_stops_inside() -> None:
    assert suitable(corpus(*[NEWS] * 9, "He came . She left .")).tokenizer.sentences == "rules"
