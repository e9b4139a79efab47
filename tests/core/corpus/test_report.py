import dataclasses
import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.crfsuite import read_crfsuite
from tagsmith.core.corpus.report import CorpusReport, LabelFault, report


def report_of(*sentences: list[str], words: list[list[str]] | None = None) -> CorpusReport:
    """Report on sentences given by their labels; words are all alike unless given."""
    lines = []
    for number, labels in enumerate(sentences):
        for token, label in enumerate(labels):
            lines.append(f"{words[number][token] if words else 'w'} {label}")
        lines.append("")
    return read_report("\n".join(lines))


def read_report(text: str) -> CorpusReport:
    return report(read_conll([text.encode()], max_line_bytes=1000))


def test_counts_lengths_and_vocabularies() -> None:
    found = read_report("a X B-NP\nb X O\n\nc Y O\n\nd Y O\n")
    assert found.label_counts == {"B-NP": 1, "O": 3}
    assert found.length_histogram == {"1": 2, "2": 1}
    assert found.vocabulary_sizes == {"0": 4, "1": 2, "label": 2}
    assert (found.sentences, found.tokens) == (3, 4)
    assert (found.duplicate_sentences, found.conflicting_sentences, found.bio_fault_count) == (0, 0, 0)


def test_duplicates_and_the_same_words_with_other_labels() -> None:
    found = read_report("a X\nb X\n\na X\nb X\n\na X\nb Y\n\na X\n\nb X\na X\n\na X\nb X\n")
    assert found.duplicate_sentences == 2
    assert found.conflicting_sentences == 1


def test_short_sentences_of_the_first_words_of_a_corpus_are_not_equal() -> None:
    """The second and the third had one hash when hashing began with 0."""
    found = read_report("a X\nb X\nc X\n\nb X\n\nc X\na X\n")
    assert (found.duplicate_sentences, found.conflicting_sentences) == (0, 0)


def bags_report(text: str) -> CorpusReport:
    return report(read_crfsuite([text.encode()], max_line_bytes=1000))


def test_sentences_of_attribute_bags_are_duplicates_only_if_their_attributes_and_values_are_equal() -> None:
    found = bags_report("X\ta\n\nX\tb\n\nX\ta:2\n\nX\ta\tb\n\nX\ta\nX\tb\n\nX\tb\nX\ta\n")
    assert (found.duplicate_sentences, found.conflicting_sentences) == (0, 0)
    assert found.vocabulary_sizes == {"attributes": 2, "label": 1}


def test_duplicates_among_attribute_bags_have_the_same_attributes_in_any_order() -> None:
    found = bags_report("X\ta\tb:2\n\nX\tb:2\ta:1\n\nY\ta\tb:2\n\nX\ta\tb:3\n")
    assert (found.duplicate_sentences, found.conflicting_sentences) == (1, 1)


def test_attributes_belong_to_their_token() -> None:
    found = bags_report("X\ta\tb\nX\tc\n\nX\ta\nX\tb\tc\n\nX\ta\tb\tc\nX\n")
    assert found.duplicate_sentences == 0
    without_any = bags_report("X\nX\n\nX\n")
    assert (without_any.duplicate_sentences, without_any.conflicting_sentences) == (0, 0)


def test_an_inside_label_without_its_beginning_is_a_fault_in_iob2() -> None:
    found = report_of(["B-X", "I-X", "I-Y"], ["I-X"], ["O", "I-X", "I-X"], ["B-X", "I-X"])
    assert found.label_scheme == "IOB2"
    assert found.bio_fault_count == 3
    assert found.bio_faults == (
        LabelFault(0, 2, "I-Y", "I-X"),
        LabelFault(1, 0, "I-X", None),
        LabelFault(2, 1, "I-X", "O"),
    )


def test_iob1_is_recognised_and_has_no_fault() -> None:
    found = report_of(["I-X", "I-X", "B-X", "O", "I-Y"], ["I-X"])
    assert (found.label_scheme, found.bio_fault_count) == ("IOB1", 0)


def test_bioes_faults_are_chunks_not_opened_or_not_closed() -> None:
    good = report_of(["B-X", "I-X", "E-X", "S-Y", "O"], ["B-X", "E-X", "B-X", "E-X"])
    assert (good.label_scheme, good.bio_fault_count) == ("BIOES", 0)
    bad = report_of(["B-X", "O"], ["E-X"], ["B-X", "E-Y"], ["S-X", "I-X", "E-X"], ["O", "B-X"])
    assert [(fault.sentence, fault.token) for fault in bad.bio_faults] == [
        (0, 1),
        (1, 0),
        (2, 1),
        (3, 1),
        (4, 1),
    ]


def test_segmentation_labels_are_checked_too() -> None:
    found = report_of(["B", "M", "E", "S"], ["B", "S"])
    assert (found.label_scheme, found.bio_fault_count) == ("BMES", 1)


@pytest.mark.parametrize("labels", [["NN", "VB"], ["I-X", "E-X", "O"], ["[-X", "]-X"], ["O"]])
def test_other_labels_are_not_judged(labels: list[str]) -> None:
    found = report_of(labels)
    assert (found.label_scheme, found.bio_fault_count, found.bio_faults) == (None, 0, ())


def test_a_hundred_places_are_named_and_all_are_counted() -> None:
    found = report_of(["B-X"], *[["I-X"]] * 250)
    assert found.bio_fault_count == 250
    assert len(found.bio_faults) == 100
    assert found.bio_faults[-1].sentence == 100


def test_a_corpus_without_labels_has_a_report() -> None:
    found = report(read_conll([b"a\nb\n\na\nb\n"], max_line_bytes=100, labelled=False))
    assert (found.label_counts, found.label_scheme, found.bio_fault_count) == ({}, None, 0)
    assert (found.duplicate_sentences, found.conflicting_sentences) == (1, 0)
    assert found.vocabulary_sizes == {"0": 2}


def test_a_report_is_plain_json() -> None:
    found = dataclasses.asdict(report_of(["B-X", "I-Y"]))
    assert json.loads(json.dumps(found))["bio_faults"] == [
        {"sentence": 0, "token": 1, "label": "I-Y", "previous": "B-X"}
    ]


LABELS = st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), min_size=1, max_size=8)


@settings(max_examples=200, deadline=None)
@given(st.lists(LABELS, min_size=1, max_size=8))
def test_faults_and_duplicates_are_those_of_a_slow_count(sentences: list[list[str]]) -> None:
    # A leading B makes the scheme IOB2 beyond doubt.
    sentences = [["B-X", "O"], *sentences]
    found = report_of(*sentences)
    slow = sum(
        label[0] == "I" and (previous == "O" or previous[1:] != label[1:])
        for labels in sentences
        for previous, label in pairwise(["O", *labels])
    )
    assert found.bio_fault_count == slow
    assert found.duplicate_sentences == len(sentences) - len({tuple(labels) for labels in sentences})
    distinct_words = len({len(labels) for labels in sentences})  # words are all alike
    assert found.conflicting_sentences == len({tuple(labels) for labels in sentences}) - distinct_words
