"""Heads, relations and weights in CoNLL-U and CoNLL-X: read, refused with lines, and written again."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import lines
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.synthetic.generate import generate
from tests.core.corpus.samples import contents, pieces, rows_of
from tests.core.corpus.test_conllu import TEXT
from tests.core.corpus.test_trees import Heads, is_tree, tree

LINE = 1 << 16
TREE = {"columns": "form,upos", "label": "tree"}
DANISH = (
    "1\tTo\tto\tA\tAC\tcase=u|id=43\t4\tsubj\t_\t_\n"
    "2\tkendte\tkendt\tA\tAN\tid=44|degree=pos\t1\tmod\t_\t_\n"
    "3\tmænd\tmand\tN\tNC\tid=45\t1\tnobj\t_\t_\n"
    "4\ttror\ttro\tV\tVA\tmood=i|id=46|tense=p\t0\tROOT\t0\tROOT\n"
    "5\t?\t?\tX\tXP\t_\t0\tROOT\t_\t_\n\n"
    "1\tJa\tja\tI\tI\tidle=1|ids\t0\tROOT\t_\t_\n"
)


def read(text: str | bytes, name: str = "conllu", size: int = LINE, **options: str) -> Corpus:
    data = text if isinstance(text, bytes) else text.encode()
    given = options or (TREE if name == "conllu" else {})
    return formats.read(pieces(data, size), name, max_line_bytes=200, options=given)


def faults_of(text: str, name: str = "conllu", **options: str) -> list[tuple[int | None, str]]:
    with pytest.raises(Invalid) as caught:
        read(text, name, **options)
    return [(fault.line, fault.reason) for fault in caught.value.faults]


def heads_of(corpus: Corpus) -> list[Heads]:
    assert corpus.trees is not None
    return [part.tolist() for part in np.split(corpus.trees.heads, corpus.offsets[1:-1])]


def conllu(*sentences: list[int | str]) -> str:
    """Sentences with these heads; words are called a, b, c and so on."""
    return "\n".join(
        "".join(
            f"{n}\t{chr(96 + n % 26)}\t_\tX\t_\t_\t{head}\trel{n % 3}\t_\t_\n"
            for n, head in enumerate(heads, start=1)
        )
        for heads in sentences
    )


# -- what is read --


def test_heads_and_relations_are_those_of_words_not_of_multiword_tokens_and_empty_nodes() -> None:
    corpus = read(TEXT)
    assert heads_of(corpus) == [[0, 1, 5, 5, 1], [2, 0, 2]]
    assert corpus.labels is None
    assert rows_of(corpus)[0] == [
        ("vamos", "VERB", "root"),
        ("nos", "PRON", "obj"),
        ("a", "ADP", "case"),
        ("el", "DET", "det"),
        ("mar", "NOUN", "obl"),
    ]


def test_a_sentence_may_have_several_roots() -> None:
    assert heads_of(read(conllu([0, 1, 0], [0]))) == [[0, 1, 0], [0]]


def test_unlabelled_text_is_read_without_trees_whatever_its_heads_are() -> None:
    corpus = read(conllu([2, "x"]), columns="form", label="tree", labelled="false")
    assert not corpus.labelled


def test_heads_can_still_be_a_column_beside_other_labels() -> None:
    corpus = read(conllu([2, 1]), columns="form,head", label="deprel")
    assert rows_of(corpus) == [[("a", "2", "rel1"), ("b", "1", "rel2")]]


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize(("name", "text"), [("conllu", TEXT), ("conllx", DANISH)])
def test_where_chunks_are_cut_and_how_lines_end_does_not_matter(name: str, text: str, size: int) -> None:
    data = ("\ufeff" + text).replace("\n", "\r\n").encode()
    assert contents(read(data, name, size)) == contents(read(text, name))


@settings(max_examples=100, deadline=None)
@given(st.lists(tree(), min_size=1, max_size=5), st.integers(1, 60))
def test_trees_are_read_as_they_were_written_and_written_as_they_were_read(
    sentences: list[Heads], size: int
) -> None:
    corpus = read(conllu(*sentences), size=size)
    assert heads_of(corpus) == sentences
    again = read(b"".join(formats.write(corpus, "conllu", TREE)))
    assert contents(again) == contents(corpus)


def test_a_sentence_longer_than_a_batch_is_checked_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_BATCH_BYTES", 256)
    long = [0, *range(1, 500)]
    assert heads_of(read(conllu([0], long, [2, 0], long))) == [[0], long, [2, 0], long]
    assert faults_of(conllu([0], [500, *range(1, 500)])) == [
        (3, "no word of the sentence has the head 0, so that word 1 is in a cycle")
    ]
    assert faults_of(conllu([0], [501, *long[1:]], [3, 0])) == [
        (3, "the head is 501, but the sentence has 500 words"),
        (504, "the head is 3, but the sentence has 2 words"),
    ]


# -- what is refused --


NOT_A_HEAD = "the head must be the number of a word of the sentence, or 0 for a root"


@pytest.mark.parametrize(
    ("heads", "line", "reason"),
    [
        *(([0, wrong], 4, NOT_A_HEAD) for wrong in ("_", "", "x", "-1", "1.5", "01", "9" * 10, "1 ")),
        ([0, 2], 4, "word 2 is its own head"),
        ([0, 3], 4, "the head is 3, but the sentence has 2 words"),
        ([0, 3, 2], 4, "word 2 is in a cycle: following the heads from it leads back to it, not to a root"),
        ([2, 3, 1], 3, "no word of the sentence has the head 0, so that word 1 is in a cycle"),
    ],
)
def test_faults_of_heads_are_located(heads: list[int | str], line: int, reason: str) -> None:
    assert faults_of(conllu([0], heads, [0])) == [(line, reason)]


def test_every_faulty_sentence_is_reported() -> None:
    assert [line for line, _ in faults_of(conllu([1], [0], [2, 1], ["x"], [5, 0, 5]))] == [1, 5, 8, 10, 12]


def test_the_tree_of_a_sentence_with_faulty_lines_is_not_judged() -> None:
    missing = conllu([0, 4, 2, 2]).replace("3\tc", "4\tc")
    assert faults_of(missing) == [(3, "expected word 3, found 4"), (4, "expected word 5, found 4")]


def test_a_hundred_faults_are_enough() -> None:
    assert len(faults_of(conllu(*[[2, 1]] * 150))) == 100
    assert len(faults_of(conllu([9] * 3, [200] * 150))) == 100


def test_an_empty_relation_is_refused() -> None:
    assert faults_of(conllu([0]).replace("rel1", "")) == [(1, "the field deprel is empty")]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=4), st.integers(1, 60)
)
def test_a_file_is_refused_if_one_sentence_is_not_a_tree(sentences: list[Heads], size: int) -> None:
    wrong = [number for number, heads in enumerate(sentences) if not is_tree(heads)]
    if not wrong:
        assert heads_of(read(conllu(*sentences), size=size)) == sentences
        return
    starts = np.cumsum([1, *(len(heads) + 1 for heads in sentences)])
    with pytest.raises(Invalid) as caught:
        read(conllu(*sentences), size=size)
    found = [int(np.searchsorted(starts, fault.line or 0, side="right")) - 1 for fault in caught.value.faults]
    assert sorted(set(found)) == wrong
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("name", "values", "parameter", "reason"),
    [
        ("conllu", {"columns": "form,head", "label": "tree"}, "label", "head must not be one of the columns"),
        ("conllx", {"columns": "form,deprel"}, "label", "deprel must not be one of the columns"),
        ("conllu", {"label": "tree", "labels": "iob2"}, None, "Trees have no labels"),
        ("conllx", {"repair": "true"}, None, "Trees have no labels"),
        ("conllx", {"partial": "true"}, None, "Trees have no labels"),
        (
            "conllx",
            {"columns": "form,upos"},
            "columns",
            "'upos' is not a field; fields: id, form, lemma, cpostag",
        ),
        ("conllx", {"drop_feats": "id,a=b"}, "drop_feats", "'a=b' is not the name of a feature"),
        ("conllx", {"drop_feats": "id,"}, "drop_feats", "'' is not the name of a feature"),
        ("conllu", {"drop_feats": "id"}, "drop_feats", "not an option of conllu"),
    ],
)
def test_wrong_options_are_named(
    name: str, values: dict[str, str], parameter: str | None, reason: str
) -> None:
    with pytest.raises(Invalid) as caught:
        formats.parse_options(name, values)
    (fault,) = caught.value.faults
    assert fault.parameter == parameter
    assert reason in fault.reason


# -- CoNLL-X --


def test_conllx_has_trees_by_default_and_labels_in_any_field() -> None:
    corpus = read(DANISH, "conllx")
    assert heads_of(corpus) == [[4, 1, 1, 0, 0], [0]]
    assert rows_of(corpus)[1] == [("Ja", "ROOT")]
    other = read(DANISH, "conllx", columns="form,phead", label="postag")
    assert rows_of(other)[0][3] == ("tror", "0", "VA")


@pytest.mark.parametrize(
    ("options", "feats"),
    [
        ({}, ["case=u", "degree=pos", "_", "mood=i|tense=p", "_", "idle=1|ids"]),
        ({"drop_feats": "id"}, ["case=u", "degree=pos", "_", "mood=i|tense=p", "_", "idle=1|ids"]),
        ({"drop_feats": "mood, id,ids"}, ["case=u", "degree=pos", "_", "tense=p", "_", "idle=1"]),
        (
            {"drop_feats": ""},
            ["case=u|id=43", "id=44|degree=pos", "id=45", "mood=i|id=46|tense=p", "_", "idle=1|ids"],
        ),
    ],
)
def test_features_are_dropped_by_name(options: dict[str, str], feats: list[str]) -> None:
    corpus = read(DANISH, "conllx", columns="form,feats,lemma", **options)
    assert [row[1] for rows in rows_of(corpus) for row in rows] == feats
    assert [row[2] for row in rows_of(corpus)[0]] == ["to", "kendt", "mand", "tro", "?"]


parts = st.sampled_from(["id", "id=1", "id==", "idx=2", "a", "a=id", "", "=id"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(parts, min_size=1, max_size=5).map("|".join).filter(bool), min_size=1, max_size=4))
def test_dropped_features_are_those_of_a_slow_filter(lists: list[str]) -> None:
    text = "".join(f"{n}\tw\t_\t_\t_\t{feats}\t0\tx\t_\t_\n" for n, feats in enumerate(lists, start=1))
    (rows,) = rows_of(read(text, "conllx", columns="feats", drop_feats="id,a"))
    slow = [
        "|".join(p for p in feats.split("|") if p.partition("=")[0] not in ("id", "a")) for feats in lists
    ]
    assert [row[0] for row in rows] == [feats or "_" for feats in slow]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("# text = a\n", "expected 10 tab-separated fields, found 1"),
        ("1-2\ta" + "\t_" * 8 + "\n", "the first field must be a word number such as 3"),
        ("1.1\ta" + "\t_" * 8 + "\n", "the first field must be a word number such as 3"),
    ],
)
def test_conllx_has_only_words(line: str, reason: str) -> None:
    assert faults_of(line + DANISH, "conllx") == [(1, reason)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (DANISH, "conllx"),
        (DANISH.replace("\n", "\r\n"), "conllx"),
        # In doubt CoNLL-U: comments, ranges, universal tags, or no heads.
        ("# a comment\n" + DANISH, "conllu"),
        ("1-2\tx" + "\t_" * 8 + "\n" + DANISH, "conllu"),
        (conllu([0, 1]), "conllu"),
        (conllu([0, 1]).replace("\tX\t", "\t_\t"), "conllu"),
        (conllu(["_", "_"]).replace("\tX\t", "\tNC\t"), "conllu"),
        (conllu([0, 1]).replace("\tX\t", "\tNC\t"), "conllx"),
    ],
)
def test_conllx_is_told_from_conllu_by_its_tags_and_by_what_it_does_not_have(text: str, name: str) -> None:
    reading = formats.reader("auto", max_line_bytes=LINE)
    reading.feed(text.encode())
    reading.finish()
    assert reading.format == name


def test_a_faulty_line_does_not_make_conllx_another_format() -> None:
    with pytest.raises(Invalid, match="It was read as conllx") as caught:
        formats.read([(DANISH + "\n" + "2\tx\n").encode()], "auto", max_line_bytes=LINE)
    assert [fault.line for fault in caught.value.faults] == [9]


# -- weights --


def weighted(*weights: str) -> str:
    return "\n".join(f"{weight}\n" * bool(weight) + conllu([0, 1]) for weight in weights)


@pytest.mark.parametrize("label", ["tree", "deprel"])
@pytest.mark.parametrize("size", [1, 10, LINE])
def test_a_comment_before_a_sentence_is_its_weight(label: str, size: int) -> None:
    text = weighted(
        "# weight = 2.0",
        "",
        "#weight=1e-3 ",
        "# Weight = 5",
        "#\tweight =\t1000000\n\n# text",
        "# weights = 3",
    )
    corpus = read(text, size=size, label=label)
    assert corpus.weights is not None
    assert corpus.weights.dtype == np.float32
    assert corpus.weights.tolist() == pytest.approx([2, 1, 1e-3, 1, 1e6, 1])


@pytest.mark.parametrize("comment", ["", "# weight", "# weight 2", "# weight = 1", "# the weight = 2"])
def test_a_corpus_whose_sentences_all_count_the_same_has_no_weights(comment: str) -> None:
    assert read(weighted(comment, "")).weights is None


@pytest.mark.parametrize(
    "value", ["", "0", "-1", "0.0", "two", "1,5", "nan", "inf", "1e400", "1e-60", "1000000.5", "2 kg"]
)
def test_weights_that_are_not_positive_numbers_up_to_a_million_are_refused(value: str) -> None:
    assert faults_of(weighted("", f"# weight = {value}")) == [
        (4, "a weight is a number from 1e-06 to 1e+06, such as # weight = 2.5")
    ]


def test_a_sentence_has_one_weight_before_its_words() -> None:
    assert faults_of(weighted("# weight = 1\n# weight = 2")) == [(2, "a second weight for the same sentence")]
    late = conllu([0, 1]).replace("2\tb", "# weight = 2\n2\tb")
    assert faults_of(late) == [(2, "the weight must be before the first word of its sentence")]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(2**-19, 1e6, width=32), min_size=1, max_size=4))
def test_weights_are_written_so_that_they_read_back_the_same(weights: list[float]) -> None:
    corpus = read(weighted(*(f"# weight = {np.float32(weight)}" for weight in weights)))
    text = b"".join(formats.write(corpus, "conllu", TREE))
    assert contents(read(text)) == contents(corpus)
    assert text.count(b"# weight") == sum(weight != 1 for weight in weights)


# -- what is written --


@pytest.mark.parametrize(
    ("source", "target", "options"),
    [
        ("conllx", "conllx", {"columns": "form,postag"}),
        ("conllx", "conllu", {"columns": "form,xpos", "label": "tree"}),
        # Whatever the label is to be: the corpus has trees.
        ("conllx", "conllu", {"columns": "form,xpos"}),
    ],
)
def test_trees_are_written_in_both_formats(source: str, target: str, options: dict[str, str]) -> None:
    corpus = read(DANISH, source, columns="form,postag")
    text = b"".join(formats.write(corpus, target, options))
    assert text.startswith(b"1\tTo\t_\t_\tAC\t_\t4\tsubj\t_\t_\n2\t")
    again = read(text, target, **{**options, "label": "tree"})
    assert heads_of(again) == heads_of(corpus)
    assert rows_of(again) == rows_of(corpus)


@pytest.mark.parametrize("kind", ["trees", "crossing-trees"])
def test_generated_trees_go_through_conllx_unchanged(kind: str) -> None:
    corpus = formats.read(generate(kind, 3000, 1), "conllu", max_line_bytes=LINE, options=TREE)
    options = {"columns": "form,cpostag"}
    again = formats.read(
        formats.write(corpus, "conllx", options), "conllx", max_line_bytes=LINE, options=options
    )
    assert heads_of(again) == heads_of(corpus)
    assert rows_of(again) == rows_of(corpus)


@pytest.mark.parametrize(
    "name", [name for name in formats.known_formats() if name not in ("conllu", "conllx", "ndjson")]
)
def test_other_formats_refuse_trees(name: str) -> None:
    with pytest.raises(
        Invalid, match=r"cannot hold dependency trees\. Use ndjson or conllu or conllx\."
    ) as caught:
        formats.write(read(DANISH, "conllx"), name)
    assert caught.value.code == "unwritable_value"


def test_json_lines_have_heads_and_relations() -> None:
    corpus = read(DANISH, "conllx", columns="form,postag")
    first = json.loads(b"".join(formats.write(corpus, "ndjson")).splitlines()[0])
    size = len(first["tokens"])
    assert first["heads"] == corpus.trees.heads[:size].tolist()  # type: ignore[union-attr]
    names = corpus.trees.relations.vocabulary.strings()  # type: ignore[union-attr]
    assert first["relations"] == [names[i] for i in corpus.trees.relations.ids[:size]]  # type: ignore[union-attr]


def test_fields_that_trees_need_are_not_written_from_columns() -> None:
    corpus = read(DANISH, "conllx", columns="form,postag")
    with pytest.raises(Invalid, match="Name other fields") as caught:
        formats.write(corpus, "conllu", {"columns": "form,head"})
    assert (caught.value.code, caught.value.faults[0].parameter) == ("invalid_options", "columns")


def test_labels_are_not_written_as_trees() -> None:
    corpus = read(DANISH, "conllx", label="postag")
    with pytest.raises(Invalid, match="labels, not trees") as caught:
        formats.write(corpus, "conllx")
    assert (caught.value.code, caught.value.faults[0].parameter) == ("invalid_options", "label")


def test_dropped_features_are_an_option_of_reading_only() -> None:
    stored = formats.parse_options("conllx", {}).model_dump(mode="json")
    assert "drop_feats" not in formats.writing_options("conllx", stored, "conllx", {})
    with pytest.raises(Invalid, match="not for writing"):
        formats.writing_options("conllx", stored, "conllx", {"drop_feats": "id"})
