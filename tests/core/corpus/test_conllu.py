"""CoNLL-U, by the field."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.conllu import FIELDS, read_conllu
from tests.core.corpus.samples import contents, pieces, rows_of

LINE = 1 << 16

TEXT = """# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tV\tMood=Imp\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tP\tCase=Acc|Number=Plur\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\tA\t_\t5\tcase\t_\t_
4\tel\tel\tDET\tD\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\tN\t_\t1\tobl\t_\tSpaceAfter=No

# sent_id = 2
1\tSue\tSue\tPROPN\tN\t_\t2\tnsubj\t_\t_
2\tlikes\tlike\tVERB\tV\t_\t0\troot\t_\t_
2.1\tlikes\tlike\tVERB\tV\t_\t_\t_\t0:exc\t_
3\tNew York\tNew York\tPROPN\tN\t_\t2\tobj\t_\t_
"""


def word(number: str, *others: str) -> str:
    return "\t".join([number, *others]) + "\n"


def faults_of(text: str | bytes) -> list[tuple[int | None, str]]:
    with pytest.raises(Invalid) as caught:
        read_conllu([text if isinstance(text, bytes) else text.encode()], max_line_bytes=200)
    return [(fault.line, fault.reason) for fault in caught.value.faults]


def test_words_are_read_and_multiword_tokens_empty_nodes_and_comments_are_not() -> None:
    corpus = read_conllu([TEXT.encode()], max_line_bytes=LINE)
    assert rows_of(corpus) == [
        [("vamos", "VERB"), ("nos", "PRON"), ("a", "ADP"), ("el", "DET"), ("mar", "NOUN")],
        [("Sue", "PROPN"), ("likes", "VERB"), ("New York", "PROPN")],
    ]
    assert [column.name for column in corpus.columns] == ["form"]


def test_columns_and_label_are_chosen_by_name_and_in_any_order() -> None:
    corpus = read_conllu(
        [TEXT.encode()], max_line_bytes=LINE, columns=("feats", "form", "upos"), label="xpos"
    )
    assert rows_of(corpus)[0][1] == ("Case=Acc|Number=Plur", "nos", "PRON", "P")
    assert [column.name for column in corpus.columns] == ["feats", "form", "upos"]


def test_every_field_can_be_read_at_once() -> None:
    data = word("1", *"abcdefghi").encode()
    corpus = read_conllu([data], max_line_bytes=LINE, columns=FIELDS[:-1], label="misc")
    assert rows_of(corpus) == [[("1", *"abcdefghi")]]


@pytest.mark.parametrize("size", [1, 3, 17, 100])
def test_where_chunks_are_cut_and_how_lines_end_does_not_matter(size: int) -> None:
    whole = read_conllu([TEXT.encode()], max_line_bytes=LINE)
    data = ("\ufeff" + TEXT).replace("\n", "\r\n").encode()
    assert contents(read_conllu(pieces(data, size), max_line_bytes=LINE)) == contents(whole)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 50))
def test_sentences_have_the_words_they_were_written_with(lengths: list[int], size: int) -> None:
    blocks = [
        "".join(word(str(k + 1), f"w{k}", *"_" * 8) for k in range(length)) + "\n" for length in lengths
    ]
    corpus = read_conllu(pieces("\n".join(blocks).encode(), size), max_line_bytes=LINE)
    assert [[row[0] for row in rows] for rows in rows_of(corpus)] == [
        [f"w{k}" for k in range(length)] for length in lengths
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1\ta\t_\tX\n", "expected 10 tab-separated fields, found 4"),
        ("1 a _ X _ _ _ _ _ _\n", "expected 10 tab-separated fields, found 1"),
        (word("1", "", *"_" * 8), "the field form is empty"),
        (word("1", "a", "_", "", *"_" * 6), "the field upos is empty"),
        (word("2", "a", *"_" * 8), "expected word 1, found 2"),
        (word("1-2", "a", *"_" * 8) + word("2", "a", *"_" * 8), "expected word 1, found 2"),
        *(
            (
                word(wrong, "a", *"_" * 8),
                "the first field must be a word number such as 3, a range such as 3-4 or a node such as 3.1",
            )
            for wrong in (
                "",
                "a",
                "-",
                "1-",
                "-1",
                "2-1",
                "0-1",
                "1.",
                ".1",
                "1.0",
                "1-2-3",
                "01",
                "9" * 30,
                "1.1x",
            )
        ),
        (word("1", "a\x01", *"_" * 8), "control byte 0x01 at byte 4"),
        ("# " + "x" * 200 + "\n", "longer than 200 bytes"),
    ],
)
def test_faults_are_located(line: str, reason: str) -> None:
    good = word("1", "a", *"_" * 8) + "\n"
    (found, *others) = faults_of(good + line)
    assert found == (3 + line.startswith("1-2\t"), reason)
    assert not others


def test_bytes_that_are_not_utf8_are_faults_in_comments_too() -> None:
    assert faults_of(b"# \xff\n") == [(1, "not UTF-8: byte 0xFF at byte 3")]


def test_a_hundred_faults_are_enough() -> None:
    assert len(faults_of(word("7", "", "_", "", *"_" * 6) * 500)) == 100


@pytest.mark.parametrize("text", ["", "# only this\n", "\n\n", word("1-2", *"_" * 9)])
def test_a_file_without_words_is_empty(text: str) -> None:
    assert faults_of(text) == [(1, "The file has no token.")]


@pytest.mark.parametrize(
    ("values", "parameter", "reason"),
    [
        ({"columns": "form,pos"}, "columns", "'pos' is not a field; fields: id, form, lemma"),
        ({"columns": "form,form"}, "columns", "'form' is named twice"),
        ({"columns": ""}, "columns", "at least one field"),
        ({"columns": "form,upos"}, "label", "the label upos must not be one of the columns"),
        ({"label": "tag"}, "label", "'tag' is not a field"),
    ],
)
def test_wrong_options_are_named(values: dict[str, str], parameter: str, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        formats.parse_options("conllu", values)
    (fault,) = caught.value.faults
    assert fault.parameter == parameter
    assert reason in fault.reason


def test_options_reach_the_reader() -> None:
    reader = formats.reader("conllu", max_line_bytes=LINE, options={"columns": "form,upos", "label": "xpos"})
    reader.feed(TEXT.encode())
    assert rows_of(reader.finish())[0][0] == ("vamos", "VERB", "V")
