"""What a model gets wrong."""

import numpy as np

from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.crfsuite import read_crfsuite
from tagsmith.core.evaluate import mistakes
from tagsmith.core.evaluate.mistakes import confusion, wrong_sentences

NAMES = ["O", "B", "I"]


def ids(*labels: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(labels, np.int32)


def test_pairs_of_labels_are_counted_most_frequent_first() -> None:
    found = confusion(NAMES, ids(0, 0, 0, 1, 1, 2), ids(0, 0, 1, 1, 2, 2))
    assert found[0] == {"gold": "O", "predicted": "O", "count": 2}
    assert {(pair["gold"], pair["predicted"]): pair["count"] for pair in found} == {
        ("O", "O"): 2, ("O", "B"): 1, ("B", "B"): 1, ("B", "I"): 1, ("I", "I"): 1,
    }  # fmt: skip


def test_of_too_many_pairs_the_correct_ones_are_left_out_first() -> None:
    names = [str(label) for label in range(mistakes.MAX_PAIRS + 50)]
    gold = np.repeat(np.arange(len(names), dtype=np.int32), 5)
    predicted = gold.copy()
    predicted[::5] = (gold[::5] + 1) % len(names)
    found = confusion(names, gold, predicted)
    assert len(found) == mistakes.MAX_PAIRS
    assert all(pair["gold"] != pair["predicted"] for pair in found)


def test_sentences_with_a_wrong_label_are_shown_as_they_are() -> None:
    corpus = read_conll([b"a x O\nb y B\n\nc z O\n\nd w I\n"], max_line_bytes=99)
    (first, last) = wrong_sentences(corpus, NAMES, ids(0, 1, 0, 2), ids(0, 2, 0, 0))
    assert first == {"index": 0, "tokens": ["a", "b"], "gold": ["O", "B"], "predicted": ["O", "I"]}
    assert (last["index"], last["tokens"]) == (2, ["d"])
    assert wrong_sentences(corpus, NAMES, ids(0, 1, 0, 2), ids(0, 1, 0, 2)) == []


def test_tokens_with_attributes_are_shown_by_their_first_one() -> None:
    corpus = read_crfsuite([b"O\tw=a\tcap\nB\n\n"], max_line_bytes=99)
    (only,) = wrong_sentences(corpus, NAMES, ids(0, 1), ids(0, 0))
    assert only["tokens"] == ["w=a", ""]


def test_a_result_stays_small() -> None:
    long = b"w O\n" * (mistakes.MAX_TOKENS - 1) + b"\n"
    corpus = read_conll([b"a O\n\n" * (mistakes.MAX_SENTENCES + 9)], max_line_bytes=99)
    wrong = np.zeros(corpus.tokens, np.int32)
    assert len(wrong_sentences(corpus, NAMES, wrong + 1, wrong)) == mistakes.MAX_SENTENCES
    corpus = read_conll([long * 3], max_line_bytes=99)
    wrong = np.zeros(corpus.tokens, np.int32)
    assert len(wrong_sentences(corpus, NAMES, wrong + 1, wrong)) == 1
