import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.corpus.labels.chunks import codes_chunks
from tagsmith.core.evaluate.spans import Metrics, TokenSpan, evaluate, spans_of
from tests.core.evaluate import conlleval_twin as twin


def measured(sentences: list[tuple[list[str], list[str]]], names: list[str] | None = None) -> Metrics:
    names = names or sorted({label for pair in sentences for side in pair for label in side} | {"O"})
    place = {name: number for number, name in enumerate(names)}
    gold = np.array([place[label] for g, _ in sentences for label in g], np.int32)
    predicted = np.array([place[label] for _, p in sentences for label in p], np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(g) for g, _ in sentences])]).astype(np.int64)
    return evaluate(names, gold, predicted, offsets)


def agrees(sentences: list[tuple[list[str], list[str]]], names: list[str]) -> None:
    found, expected = measured(sentences, names), twin.score(sentences)
    assert found.correct == expected.correct.total()
    assert found.gold == expected.gold.total()
    assert found.predicted == expected.predicted.total()
    assert (found.tokens, found.tokens_correct) == (expected.tokens, expected.tokens_correct)
    for name, scores in found.by_type.items():
        assert (scores.correct, scores.gold, scores.predicted) == (
            expected.correct[name],
            expected.gold[name],
            expected.predicted[name],
        )


CLASSIC = ["O", ".", *(f"{tag}{kind}" for tag in "BIE[]." for kind in ("-X", "-Y", "")), "XX"]
IOB = ["O", "B-X", "I-X", "B-Y", "I-Y", "B-a-b", "I-a-b"]
IOE = ["O", "I-X", "E-X", "I-Y", "E-Y"]


def pairs_of(labels: list[str]) -> st.SearchStrategy[list[tuple[list[str], list[str]]]]:
    # Predictions that often agree with the gold labels, or hardly any chunk would be correct.
    token = st.tuples(st.sampled_from(labels), st.sampled_from(labels), st.integers(0, 3)).map(
        lambda t: (t[0], t[1] if t[2] == 0 else t[0])
    )
    sentence = st.lists(token, max_size=12).map(lambda ts: ([g for g, _ in ts], [p for _, p in ts]))
    return st.lists(sentence, max_size=6)


@pytest.mark.parametrize("labels", [IOB, IOE, CLASSIC], ids=["iob", "ioe", "brackets-and-all"])
def test_counts_are_those_of_the_literal_twin(labels: list[str]) -> None:
    @settings(max_examples=300, deadline=None)
    @given(pairs_of(labels))
    def check(sentences: list[tuple[list[str], list[str]]]) -> None:
        agrees(sentences, labels)

    check()


def test_counts_are_those_of_the_literal_twin_on_long_random_sequences() -> None:
    rng = np.random.default_rng(7)
    for labels in (IOB, IOE, CLASSIC):
        sentences = []
        for _ in range(400):
            gold = rng.choice(labels, rng.integers(0, 40)).tolist()
            predicted = [g if rng.random() < 0.8 else str(rng.choice(labels)) for g in gold]
            sentences.append((gold, predicted))
        agrees(sentences, labels)


def test_every_pair_of_labels_is_read_as_the_twin_reads_it() -> None:
    labels = sorted(set(CLASSIC))
    for first in labels:
        for second in labels:
            agrees([([first, second], [first, second])], labels)


def test_percentages_are_those_of_a_case_worked_by_hand() -> None:
    # Gold: X(0-1) Y(3) | X(0). Predicted: X(0-1) X(3) | X(0) Y(1). Two of three gold, two of four predicted.
    scores = measured(
        [
            (["B-X", "I-X", "O", "B-Y"], ["B-X", "I-X", "O", "B-X"]),
            (["B-X", "O"], ["B-X", "B-Y"]),
        ]
    )
    assert (scores.correct, scores.gold, scores.predicted) == (2, 3, 4)
    assert scores.precision == 50.0
    assert scores.recall == pytest.approx(200 / 3)
    assert scores.f1 == pytest.approx(2 * 50 * (200 / 3) / (50 + 200 / 3))
    assert scores.accuracy == pytest.approx(100 * 4 / 6)
    assert (scores.sentences, scores.sentences_correct) == (2, 0)
    assert list(scores.by_type) == ["X", "Y"]
    assert (scores.by_type["X"].correct, scores.by_type["X"].gold, scores.by_type["X"].predicted) == (2, 2, 3)
    assert scores.by_type["Y"].f1 == 0.0


def test_a_span_with_the_right_start_and_the_wrong_end_is_wrong() -> None:
    assert measured([(["B-X", "I-X", "I-X"], ["B-X", "I-X", "O"])]).correct == 0


def test_a_chunk_does_not_run_on_into_the_next_sentence() -> None:
    scores = measured([(["B-X"], ["B-X"]), (["I-X"], ["I-X"])])
    assert (scores.gold, scores.correct, scores.sentences_correct) == (2, 2, 2)


def test_bioes_chunks_next_to_each_other_stay_apart() -> None:
    labels = ["B-X", "E-X", "B-X", "I-X", "E-X", "S-X", "S-X", "O"]
    expected = [TokenSpan("X", 0, 2), TokenSpan("X", 2, 5), TokenSpan("X", 5, 6), TokenSpan("X", 6, 7)]
    assert spans_of(labels) == expected
    assert measured([(labels, labels)]).gold == 4
    names = ["O", "B-X", "I-X", "E-X", "S-X"]
    assert spans_of(["B-X", "E-X", "B-X", "E-X"], names) == [TokenSpan("X", 0, 2), TokenSpan("X", 2, 4)]


def test_segmentation_labels_without_types_give_words() -> None:
    assert [(s.start, s.stop) for s in spans_of(["B", "M", "E", "S", "B", "E", "B", "M", "M", "E"])] == [
        (0, 3),
        (3, 4),
        (4, 6),
        (6, 10),
    ]


def test_plain_classes_are_scored_token_by_token() -> None:
    scores = measured([(["NN", "NN", "VB", "."], ["NN", "VB", "VB", "."])], ["NN", "VB", ".", "-LRB-"])
    assert (scores.correct, scores.gold, scores.predicted) == (3, 4, 4)
    assert scores.f1 == scores.accuracy == 75.0
    assert spans_of(["NN", "NN"]) == [TokenSpan("NN", 0, 1), TokenSpan("NN", 1, 2)]


@pytest.mark.parametrize(
    "labels",
    [
        "B-X O", "I-X", "U-X O", "[-X ]-X O", "B-X NN",  # a position and a type
        "B I O", "B O", "I O", "I E O", "B I E S O", "B I L U O", "S O", "B M E S O", "[ ] O",  # with an outside
        "B I", "B I E S", "B M E S", "B B2 B3 M E S", "B L U",  # nothing outside
    ],
)  # fmt: skip
def test_labels_that_code_chunks(labels: str) -> None:
    assert codes_chunks(labels.split())


@pytest.mark.parametrize(
    "labels",
    [
        "NN VB", "O", "", "X-Y", ". O", "-LRB- NN",
        "B N V", "B N V O", "M NN VV", "S A V O", "[ ] NN", "S M L", "A B O AB",  # letters among other classes
        "B", "I", "S", "I E", "B U", "B S",  # letters alone
        "U-X N-X", "B M L", "B I [",
    ],
)  # fmt: skip
def test_labels_that_are_plain_classes(labels: str) -> None:
    assert not codes_chunks(labels.split())
    assert {span.type for span in spans_of(labels.split())} == set(labels.split()) - {"O"}


def test_a_part_of_speech_named_like_a_position_is_scored_as_a_class() -> None:
    scores = measured([(["NN", "M", "M", "VV"], ["NN", "M", "M", "NN"])], ["NN", "M", "VV"])
    assert (scores.correct, scores.gold, scores.predicted) == (3, 4, 4)
    assert list(scores.by_type) == ["M", "NN", "VV"]


def test_spans_of_iob1_iob2_and_ioe_are_the_same_chunks() -> None:
    expected = [TokenSpan("X", 0, 2), TokenSpan("X", 2, 3), TokenSpan("Y", 4, 6)]
    assert spans_of(["I-X", "I-X", "B-X", "O", "I-Y", "I-Y"]) == expected
    assert spans_of(["B-X", "I-X", "B-X", "O", "B-Y", "I-Y"]) == expected
    assert spans_of(["I-X", "E-X", "E-X", "O", "I-Y", "E-Y"]) == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(IOB), max_size=15))
def test_spans_are_as_many_as_the_twin_counts(labels: list[str]) -> None:
    spans = spans_of(labels, IOB)
    assert len(spans) == twin.score([(labels, labels)]).gold.total()
    assert all(a.stop <= b.start for a, b in pairwise(spans))
    assert all(0 <= s.start < s.stop <= len(labels) for s in spans)


def test_nothing_scores_nought_and_not_an_error() -> None:
    empty = np.empty(0, np.int32)
    scores = evaluate(["O"], empty, empty, np.zeros(1, np.int64))
    assert (scores.f1, scores.accuracy, scores.tokens, scores.sentences) == (0.0, 0.0, 0, 0)
    assert spans_of([]) == []


def test_metrics_are_plain_json() -> None:
    scores = measured([(["B-X", "O"], ["B-X", "O"])])
    back = json.loads(json.dumps(scores.as_dict()))
    assert back["f1"] == 100.0
    assert back["by_type"] == {
        "X": {"precision": 100.0, "recall": 100.0, "f1": 100.0, "correct": 1, "gold": 1, "predicted": 1}
    }


@pytest.mark.parametrize(
    ("gold", "predicted", "offsets"),
    [
        ([0], [0, 0], [0, 1]),
        ([0], [2], [0, 1]),
        ([0], [-1], [0, 1]),
        ([0, 0], [0, 0], [0, 1]),
        ([0], [0], [1]),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    gold: list[int], predicted: list[int], offsets: list[int]
) -> None:
    with pytest.raises(ValueError, match="must"):
        evaluate(
            ["O", "B-X"], np.array(gold, np.int32), np.array(predicted, np.int32), np.array(offsets, np.int64)
        )
