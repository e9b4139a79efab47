"""CRFsuite's data and JSON lines: what they hold, what is refused, and that writing is the inverse of reading."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pycrfsuite
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.bag import MAX_VALUE, Bag, Cells, merged
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.crfsuite import CrfsuiteReader, read_crfsuite, write_crfsuite
from tagsmith.core.corpus.formats.ndjson import NdjsonReader, read_ndjson, write_ndjson
from tagsmith.core.corpus.labels.codings import recode
from tests.core.corpus.samples import pieces

LINE = 1000
Token = tuple[str, dict[str, float]]


def bags(corpus: Corpus) -> list[list[tuple[str | None, list[tuple[str, float]]]]]:
    """(label, attributes) of each token of each sequence, attributes in order."""
    assert corpus.bag is not None
    cells, names = corpus.bag.cells, corpus.bag.vocabulary.strings()
    labels = corpus.labels.vocabulary.strings() if corpus.labels else []
    values = cells.values.tolist() or [1.0] * cells.ids.size
    tokens = [
        (
            labels[corpus.labels.ids[t]] if corpus.labels else None,
            [(names[cells.ids[k]], values[k]) for k in range(cells.starts[t], cells.starts[t + 1])],
        )
        for t in range(corpus.tokens)
    ]
    return [tokens[a:b] for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)]


def naive_crfsuite(text: str) -> list[list[tuple[str, list[tuple[str, float]]]]]:
    """What CRFsuite's own reader makes of good data, letter by letter."""
    sequences, tokens = [], []
    for line in [*text.split("\n"), ""]:
        fields = [field for field in line.removesuffix("\r").split("\t") if field]
        if not "".join(fields).strip(" "):
            sequences += [tokens] if tokens else []
            tokens = []
            continue
        split = [_split(field) for field in fields]
        attributes = [(name, float(value) if value else 1.0) for name, value in split[1:]]
        tokens.append((split[0][0], [(name, value) for name, value in attributes if value != 0]))
    return sequences


def _split(field: str) -> tuple[str, str]:
    parts, i = [""], 0
    while i < len(field):
        if field[i] == "\\" and field[i + 1 : i + 2] in ("\\", ":"):
            i += 1
            parts[-1] += field[i]
        elif field[i] == ":":
            parts.append("")
        else:
            parts[-1] += field[i]
        i += 1
    return parts[0], parts[1] if len(parts) > 1 else ""


NAME = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\x7f"), min_size=1
).filter(lambda text: text.strip(" "))
#: Multiples of a power of two: the same in float32.
VALUE = st.integers(-4096, 4096).map(lambda n: n / 64)


def escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(":", "\\:")


@st.composite
def crfsuite_text(draw: st.DrawFn) -> str:
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(1, 3))):
            fields = [escaped(draw(NAME.filter(lambda name: name[0] != "@")))]
            for name in draw(st.lists(NAME, max_size=4)):
                ending = draw(st.one_of(st.just(""), st.just(":"), VALUE.map(lambda value: f":{value}")))
                fields.append(escaped(name) + ending)
            lines.append(
                draw(st.sampled_from(["", "\t"])) + draw(st.sampled_from(["\t", "\t\t"])).join(fields)
            )
        lines.append(draw(st.sampled_from(["", " ", "\t"])))
    return newline.join(lines) + draw(st.sampled_from(["", newline]))


@settings(max_examples=150, deadline=None)
@given(crfsuite_text(), st.integers(1, 40))
def test_crfsuite_data_is_read_as_crfsuite_reads_it_however_it_is_cut(text: str, cut: int) -> None:
    corpus = read_crfsuite(pieces(text.encode(), cut), max_line_bytes=1 << 16)
    assert bags(corpus) == naive_crfsuite(text)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(NAME, st.dictionaries(NAME, VALUE.filter(bool), max_size=4)), min_size=1, max_size=3
        ),
        min_size=1,
        max_size=3,
    )
)
def test_what_is_written_is_read_back_the_same(sequences: list[list[Token]]) -> None:
    text = "\n".join(
        json.dumps({"tokens": [token for _, token in each], "labels": [label for label, _ in each]})
        for each in sequences
    )
    corpus = read_ndjson([text.encode()], max_line_bytes=1 << 16)
    expected = [[(label, list(token.items())) for label, token in each] for each in sequences]
    assert bags(corpus) == expected
    assert bags(read_ndjson(write_ndjson(corpus), max_line_bytes=1 << 16)) == expected
    if not any(label.startswith("@") for each in sequences for label, _ in each):
        assert bags(read_crfsuite(write_crfsuite(corpus), max_line_bytes=1 << 16)) == expected


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-20, 123456.789, -MAX_VALUE, 3.4e-7])
def test_a_value_comes_back_to_the_last_bit(value: float) -> None:
    text = json.dumps({"tokens": [{"a": value}], "labels": ["x"]}).encode()
    corpus = read_ndjson([text], max_line_bytes=LINE)
    assert corpus.bag is not None
    assert corpus.bag.cells.values.tolist() == [np.float32(value)]
    for again in (
        read_crfsuite(write_crfsuite(corpus), max_line_bytes=LINE),
        read_ndjson(write_ndjson(corpus), max_line_bytes=LINE),
    ):
        assert again.bag is not None
        assert again.bag.cells.values.tolist() == [np.float32(value)]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["crfsuite", "ndjson"]),
    st.one_of(
        st.binary(max_size=80),
        st.text('{}[]":,\\\n\t tokenslabels1.e-', max_size=80).map(str.encode),
    ),
)
def test_no_bytes_do_worse_than_a_located_fault(name: str, data: bytes) -> None:
    reader = formats.reader(name, max_line_bytes=50)
    faults: tuple[Fault, ...] = ()
    try:
        reader.feed(data)
        assert reader.finish().tokens > 0
    except Invalid as error:
        faults = error.faults or (Fault("said nothing"),)
    assert all(fault.line is not None for fault in faults)


def faults_of(read: Any, data: bytes | str) -> tuple[Fault, ...]:
    encoded = data.encode() if isinstance(data, str) else data
    with pytest.raises(Invalid) as caught:
        read([encoded], max_line_bytes=LINE)
    return caught.value.faults


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("A\ta:b", "field 2: the value after the colon is not a number"),
        ("A\ta:nan", "not a number"),
        ("A\ta:inf", "not a number"),
        ("A\ta:1x", "not a number"),
        ("A\ta:1e", "not a number"),
        ("A\ta:1e99", "beyond 1e+12"),
        ("A\ta\tb:-1e13", "field 3: the value is beyond"),
        ("A\ta:1:2", "a second colon"),
        ("A\t:2", "a value without a name"),
        ("A:1\ta", "the label has a value"),
        ("@width:2\tA", "the only declaration is a weight"),
        ("@weight\tA", "the only declaration is a weight"),
        ("@weight:0\tA", "a weight is a number from 1e-06 to 1e+06"),
        ("@weight:-1", "a weight is a number"),
        ("@weight:x\tA", "a weight is a number"),
        ("@weight:1:2\tA", "a weight is a number"),
        ("@weight:1e7", "a weight is a number"),
        ("A\ta\x01", "control byte 0x01 at byte 4"),
        (b"A\ta\xff", "not UTF-8: byte 0xFF at byte 4"),
        ("A\t" + "a" * LINE, "longer than 1000 bytes"),
    ],
)
def test_a_fault_of_crfsuite_data_names_its_line(line: str | bytes, reason: str) -> None:
    encoded = line.encode() if isinstance(line, str) else line
    (fault,) = faults_of(read_crfsuite, b"A\tgood:1\n\n" + encoded + b"\nB\tgood\n")
    assert fault.line == 3
    assert reason in fault.reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[]", "must be an object"),
        ("{", "not JSON"),
        ('{"tokens": [], "labels": []}', "/tokens: must be a list of at least one token"),
        ('{"tokens": [{}], "tags": ["x"], "labels": ["x"]}', "/labels: give tags or labels, not both"),
        ('{"tokens": [{}], "tags": ["x", ""]}', "/tags: must be a list with one label per token; 2 for 1 tokens"),
        ('{"tokens": [{}], "tags": [""]}', "/tags/0: must be a non-empty string"),
        ('{"tokens": [{}]}', "/tags: must be a list with one label per token; none given"),
        ('{"tokens": [{}], "labels": []}', "/labels: must be a list with one label per token; 0 for 1 tokens"),
        ('{"tokens": [{}], "labels": [""]}', "/labels/0: must be a non-empty string"),
        ('{"tokens": [{}, "a"], "labels": ["x", "y"]}', "/tokens/1: must be an object"),
        ('{"tokens": [{"a": NaN}], "labels": ["x"]}', "not JSON"),
        ('{"tokens": [{"a": 1e13}], "labels": ["x"]}', "/tokens/0/a: must be a number from -1e+12 to 1e+12"),
        ('{"tokens": [{"a": null}], "labels": ["x"]}', "/tokens/0/a: must be a string, a number"),
        ('{"tokens": [{"a": {"b": [1]}}], "labels": ["x"]}', "/tokens/0/a/b/0: must be a string"),
        ('{"tokens": [{"a": 1, "a": 2}], "labels": ["x"]}', "the name 'a' occurs twice"),
        ('{"tokens": [{}], "more": 1}', "/tags: must be a list with one label per token; none given"),
        ('{"tokens": [{}], "ner_tags": [3]}', "/ner_tags/0: must be the name of a class, not its number"),
        ('{"text": "Ada", "spans": []}', "/tokens: must be a list of at least one token; a text with spans"),
        ('{"tokens": [{}], "tags": ["x"], "meta": {"a": 1, "a": 2}}', "twice"),
        ('{"tokens": [{"a": ' + '{"a":' * 20 + "1" + "}" * 20 + '}], "labels": ["x"]}', "more than 16 levels deep"),
    ],
)  # fmt: skip
def test_a_fault_of_json_lines_names_its_line_and_place(line: str, reason: str) -> None:
    (fault,) = faults_of(read_ndjson, '{"tokens": [{"a": 1}], "labels": ["x"]}\n\n' + line + "\n")
    assert fault.line == 3
    assert reason in fault.reason


def test_json_lines_hold_what_python_crfsuite_makes_of_feature_dicts() -> None:
    tokens: list[dict[str, Any]] = [
        {"word": "Paris", "length": 5, "capital": True, "digit": False, "none": 0.0, "a:b": 2},
        {"prefix": ["P", "Pa"], "near": {"word": "in", "far": {"x": 0.5}}, "": "empty"},
        {},
    ]
    line = json.dumps({"tokens": tokens, "labels": ["x", "y", "z"]})
    ((*found,),) = bags(read_ndjson([line.encode()], max_line_bytes=LINE))
    expected = [
        {name: value for name, value in item.items() if value}
        for item in pycrfsuite.ItemSequence(tokens).items()
    ]
    assert [dict(attributes) for _, attributes in found] == expected


def test_labels_may_be_called_tags() -> None:
    line = '{"tokens": ["a", "b"], "%s": ["x", "y"]}'
    expected = read_ndjson([(line % "labels").encode()], max_line_bytes=LINE)
    text = f"{line % 'tags'}\n{line % 'labels'}\n"
    corpus = read_ndjson([text.encode()], max_line_bytes=LINE)
    assert corpus.labels is not None
    assert corpus.labels.vocabulary.strings() == ["x", "y"]
    assert corpus.labels.ids.tolist() == [0, 1, 0, 1]
    # Writing keeps to one name.
    assert b"".join(write_ndjson(corpus)) == b"".join(write_ndjson(expected)) * 2


def test_labels_of_a_corpus_read_without_them_are_ignored() -> None:
    lines = b'{"tokens": ["a"], "tags": 5}\n{"tokens": ["b"], "labels": null}\n{"tokens": ["c"]}\n'
    corpus = read_ndjson([lines], max_line_bytes=LINE, labelled=False)
    assert (corpus.labels, corpus.sentences) == (None, 3)


def test_tokens_of_json_lines_may_be_strings_or_rows() -> None:
    words = read_ndjson([b'{"tokens": ["a", "b"], "labels": ["x", "y"]}'], max_line_bytes=LINE)
    assert words.names == ["0"]
    rows = read_ndjson([b'{"tokens": [["a", "A"], ["b", "B"]], "labels": ["x", "y"]}'], max_line_bytes=LINE)
    assert rows.columns[1].vocabulary.strings() == ["A", "B"]
    for corpus in (words, rows):
        again = read_ndjson(write_ndjson(corpus), max_line_bytes=LINE)
        assert [column.ids.tolist() for column in again.every_column()] == [
            column.ids.tolist() for column in corpus.every_column()
        ]


def test_without_labels_every_field_is_an_attribute() -> None:
    reader = CrfsuiteReader(max_line_bytes=LINE, labelled=False)
    reader.feed(b"a:2\tb\n")
    assert bags(reader.finish()) == [[(None, [("a", 2.0), ("b", 1.0)])]]
    plain = NdjsonReader(max_line_bytes=LINE, labelled=False)
    plain.feed(b'{"tokens": [{"a": 2}]}')
    assert bags(plain.finish()) == [[(None, [("a", 2.0)])]]


def corpus() -> Corpus:
    return read_crfsuite([b"B-X\ta:2\tb\nI-X\tb\n\nO\tc\nO\n\nI-X\ta\n"], max_line_bytes=LINE)


def test_a_subset_and_recoded_labels_keep_the_bags() -> None:
    assert bags(corpus().subset([2, 0])) == [bags(corpus())[2], bags(corpus())[0]]
    recoded = recode(corpus(), "iob2", repair=True).corpus
    assert [[attributes for _, attributes in each] for each in bags(recoded)] == [
        [attributes for _, attributes in each] for each in bags(corpus())
    ]


def test_merged_cells_stand_side_by_side() -> None:
    def cells(rows: Iterable[list[int]], values: list[float]) -> Cells:
        listed = list(rows)
        starts = np.cumsum([0, *map(len, listed)])
        ids = np.array([i for row in listed for i in row], np.int32)
        return Cells(starts, ids, np.array(values, np.float32))

    both = merged([cells([[1], [], [2, 3]], []), cells([[4, 5], [6], []], [0.5, 2, 3])])
    assert both.starts.tolist() == [0, 3, 4, 6]
    assert both.ids.tolist() == [1, 4, 5, 6, 2, 3]
    assert both.values.tolist() == [1, 0.5, 2, 3, 1, 1]


def test_bags_that_contradict_each_other_are_refused() -> None:
    sound = corpus().bag
    assert sound is not None
    with pytest.raises(ValueError, match="contradict"):
        Bag(sound.vocabulary, Cells(sound.cells.starts, sound.cells.ids + 100, sound.cells.values))
    with pytest.raises(ValueError, match="within bounds"):
        Bag(sound.vocabulary, Cells(sound.cells.starts, sound.cells.ids, sound.cells.values * np.nan))
    with pytest.raises(ValueError, match="bags for"):
        Corpus((), None, np.array([0, 2]), sound)
