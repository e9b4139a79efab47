import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import islice

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.recognition import UNIVERSAL_TAGS
from tagsmith.core.corpus.report import TreeReport, report
from tagsmith.core.corpus.synthetic.generate import generate, known_kinds
from tagsmith.core.corpus.synthetic.stream import Stream
from tagsmith.core.evaluate.spans import spans_of
from tests.core.corpus.samples import Sentence, rows_of

KINDS = ["references", "addresses"]


@pytest.fixture(scope="module", params=KINDS)
def sentences(request: pytest.FixtureRequest) -> list[Sentence]:
    return rows_of(read_conll(generate(request.param, 3000, seed=1), max_line_bytes=1000))


def digest(kind: str, seed: int, count: int = 300) -> str:
    return hashlib.sha256(b"".join(generate(kind, count, seed))).hexdigest()


@pytest.mark.parametrize("kind", known_kinds())
def test_a_seed_gives_the_same_bytes_and_another_seed_others(kind: str) -> None:
    assert digest(kind, 1) == digest(kind, 1)
    assert len({digest(kind, seed) for seed in (0, 1, 2, -1, 2**64 - 2)}) == 5


def test_the_bytes_do_not_hang_on_the_order_of_hashes() -> None:
    script = (
        "import hashlib, sys; from tagsmith.core.corpus.synthetic.generate import generate; "
        "print(*(hashlib.sha256(b''.join(generate(k, 300, 1))).hexdigest() for k in ('references', 'addresses')))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert outputs == {f"{digest('references', 1)} {digest('addresses', 1)}\n"}


@pytest.mark.parametrize("kind", known_kinds())
def test_a_longer_corpus_begins_with_the_shorter_one(kind: str) -> None:
    long = b"".join(generate(kind, 450, seed=9))
    assert long.startswith(b"".join(generate(kind, 250, seed=9)))


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_are_as_many_as_asked_for_with_three_columns(kind: str) -> None:
    corpus = read_conll(generate(kind, 777, seed=4), max_line_bytes=1000)
    assert corpus.sentences == 777
    assert len(corpus.columns) == 2
    assert list(generate(kind, 0, seed=4)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_sound_iob2(kind: str) -> None:
    found = report(read_conll(generate(kind, 3000, seed=1), max_line_bytes=1000))
    assert (found.label_scheme, found.bio_fault_count) == ("IOB2", 0)
    assert found.conflicting_sentences < 5


def test_a_held_out_part_has_many_words_never_seen(sentences: list[Sentence]) -> None:
    seen = {row[0] for sentence in sentences[:2500] for row in sentence}
    held_out = [row[0] for sentence in sentences[2500:] for row in sentence]
    unseen = sum(word not in seen for word in held_out) / len(held_out)
    assert 0.05 < unseen < 0.4


def test_words_are_ambiguous(sentences: list[Sentence]) -> None:
    kinds: dict[str, Counter[str]] = {}
    for sentence in sentences:
        for word, _, label in sentence:
            kinds.setdefault(word, Counter())[label.partition("-")[2]] += 1
    ambiguous = sum(sum(count.values()) for count in kinds.values() if len(count) > 1)
    assert ambiguous / sum(sum(count.values()) for count in kinds.values()) > 0.3


def test_fields_go_missing_and_change_places(sentences: list[Sentence]) -> None:
    orders = Counter(
        tuple(dict.fromkeys(span.type for span in spans_of([row[-1] for row in sentence])))
        for sentence in sentences
    )
    assert len(orders) > 50
    assert orders.most_common(1)[0][1] < 0.1 * len(sentences)


def test_a_surname_can_be_a_town_and_a_year_a_page() -> None:
    places: dict[str, set[str]] = {}
    for kind in KINDS:
        for sentence in rows_of(read_conll(generate(kind, 3000, seed=1), max_line_bytes=1000)):
            for word, _, label in sentence:
                places.setdefault(word, set()).add(label.partition("-")[2])
    assert {"AUTHOR", "PLACE", "PERSON", "CITY", "STREET"} <= places["London"]
    assert {"DATE", "PAGES"} <= places["1995"]


def test_every_coarse_class_occurs(sentences: list[Sentence]) -> None:
    classes = {row[1] for sentence in sentences for row in sentence}
    assert classes == {"CAP", "LOWER", "UPPER", "NUM", "YEAR", "PUNCT", "INIT", "MIXED"}


@pytest.mark.parametrize(("kind", "count"), [("poems", 1), ("", 1), ("references", -1)])
def test_what_cannot_be_made_is_refused_at_once(kind: str, count: int) -> None:
    with pytest.raises(Invalid):
        generate(kind, count, 1)


def test_the_stream_of_random_numbers_never_changes() -> None:
    stream = Stream(1, 2)
    assert [stream.below(1000) for _ in range(5)] == [366, 276, 500, 482, 592]
    numbers = [Stream(3).below(10) for _ in range(3)]
    assert numbers[0] == numbers[1] == numbers[2]
    many = Stream(4)
    counts = Counter(many.below(10) for _ in range(10_000))
    assert all(850 < counts[n] < 1150 for n in range(10))
    assert sum(many.chance(0.25) for _ in range(10_000)) in range(2300, 2700)


def test_chunks_come_one_at_a_time() -> None:
    chunks = list(islice(generate("addresses", 10**9, seed=1), 2))
    assert all(chunk.endswith(b"\n\n") for chunk in chunks)


@pytest.mark.parametrize(
    ("kind", "columns", "types"), [("people", 1, "PER LOC ORG"), ("chunks", 2, "NP VP PP ADVP")]
)
def test_names_and_chunks_are_well_formed_and_ambiguous(kind: str, columns: int, types: str) -> None:
    corpus = read_conll(generate(kind, 2000, seed=1), max_line_bytes=1000)
    found = report(corpus)
    assert len(corpus.columns) == columns
    assert (found.label_scheme, found.bio_fault_count) == ("IOB2", 0)
    assert {label[2:] for label in found.label_counts if label != "O"} == set(types.split())
    labels: dict[str, set[str]] = {}
    for sentence in rows_of(corpus):
        for row in sentence:
            labels.setdefault(row[0], set()).add(row[-1][2:])
    assert sum(len(each) > 1 for each in labels.values()) >= 10


def test_segmented_sentences_share_characters_between_words() -> None:
    lines = b"".join(generate("segments", 500, seed=1)).decode().splitlines()
    words = {word for line in lines for word in line.split("  ")}
    assert all(word and not word.isspace() for word in words)
    characters = Counter(character for word in words for character in set(word))
    assert sum(count > 2 for count in characters.values()) > 30


def tree_report(kind: str) -> tuple[Corpus, TreeReport]:
    options = {"columns": "form,upos", "label": "tree"}
    corpus = formats.read(generate(kind, 2000, seed=1), "conllu", max_line_bytes=1000, options=options)
    found = report(corpus).trees
    assert found is not None
    return corpus, found


@pytest.mark.parametrize(("kind", "least", "most"), [("trees", 0, 0), ("crossing-trees", 300, 600)])
def test_trees_have_one_root_and_cross_only_on_demand(kind: str, least: int, most: int) -> None:
    corpus, found = tree_report(kind)
    assert found.relation_counts["root"] == corpus.sentences == 2000
    assert least <= found.nonprojective_sentences <= most
    assert set(corpus.columns[1].vocabulary.strings()) <= UNIVERSAL_TAGS


def test_trees_follow_from_words_and_tags_but_not_from_positions_alone() -> None:
    corpus, _ = tree_report("crossing-trees")
    assert corpus.trees is not None
    tags: dict[str, set[str]] = {}
    relations: dict[tuple[str, str], Counter[str]] = {}
    lengths: dict[str, Counter[int]] = {}
    rows = rows_of(corpus)
    for sentence, start in zip(rows, corpus.offsets.tolist(), strict=False):
        for number, (word, tag, relation) in enumerate(sentence, start=1):
            head = int(corpus.trees.heads[start + number - 1])
            of = sentence[head - 1][1] if head else ""
            tags.setdefault(word, set()).add(tag)
            relations.setdefault((tag, of), Counter())[relation] += 1
            lengths.setdefault(tag, Counter())[head - number] += 1
    assert sum(len(each) > 1 for each in tags.values()) >= 5
    known = sum(each.most_common(1)[0][1] for each in relations.values())
    assert 0.75 < known / corpus.tokens < 0.99
    nearest = sum(each.most_common(1)[0][1] for each in lengths.values())
    assert nearest / corpus.tokens < 0.6
