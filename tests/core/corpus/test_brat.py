"""Brat stand-off, and the zip it comes in."""

import io
import zipfile

import pytest

from tagsmith.core.base.errors import Fault, Invalid, TooLarge
from tagsmith.core.corpus import archive
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.brat import BratReader
from tagsmith.core.corpus.text.placement import Conflicts
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tests.core.corpus.samples import contents, pieces, rows_of

TEXT = "Dr. Ada Lovelace-Byron\nlives in London (UK).\n"
ANN = (
    "T1\tPER 4 22\tAda Lovelace-Byron\nT2\tLOC 32 38\tLondon\nT3\tLOC 40 42\tUK\n"
    "R1\tIn Arg1:T2 Arg2:T3\n#1\tNote T1\tx\n"
)


def packed(members: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return file.getvalue()


def read(
    data: bytes,
    *,
    max_text_bytes: int = 1 << 20,
    labelled: bool = True,
    tokenizer: Tokenizer = Tokenizer("words", 1),  # noqa: B008  # immutable
    conflicts: Conflicts = "refuse",
    types: tuple[str, ...] = (),
) -> Corpus:
    reader = BratReader(
        max_text_bytes=max_text_bytes,
        labelled=labelled,
        tokenizer=tokenizer,
        conflicts=conflicts,
        types=types,
    )
    for piece in pieces(data, 1000):
        reader.feed(piece)
    return reader.finish()


def document(text: str, *annotations: str) -> bytes:
    return packed({"a.txt": text, "a.ann": "".join(line + "\n" for line in annotations)})


def refused(data: bytes, max_text_bytes: int = 1 << 20) -> tuple[Fault, ...]:
    with pytest.raises(Invalid) as caught:
        read(data, max_text_bytes=max_text_bytes)
    return caught.value.faults


def test_tokens_sentences_and_labels_of_a_document() -> None:
    corpus = read(
        packed({"docs/": "", "docs/x.txt": TEXT, "docs/x.ann": ANN, "annotation.conf": "[entities]"})
    )
    assert rows_of(corpus) == [
        [
            ("Dr", "O"),
            (".", "O"),
            ("Ada", "B-PER"),
            ("Lovelace", "I-PER"),
            ("-", "I-PER"),
            ("Byron", "I-PER"),
        ],
        [
            ("lives", "O"),
            ("in", "O"),
            ("London", "B-LOC"),
            ("(", "O"),
            ("UK", "B-LOC"),
            (")", "O"),
            (".", "O"),
        ],
    ]


def test_tokens_by_blanks_and_chosen_types() -> None:
    corpus = read(
        document("Ada (UK) a\u0301\u3000b", "T1\tPER 0 3\tAda", "T2\tLOC 5 7\tUK"),
        tokenizer=Tokenizer("blanks", 1),
        types=("PER",),
    )
    assert rows_of(corpus) == [[("Ada", "B-PER"), ("(UK)", "O"), ("a\u0301", "O"), ("b", "O")]]


def test_offsets_count_characters_not_bytes() -> None:
    corpus = read(document("𝔸é Köln!", "T1\tLOC 3 7\tKöln"))
    assert rows_of(corpus) == [[("𝔸é", "O"), ("Köln", "B-LOC"), ("!", "O")]]


def test_documents_keep_the_order_of_their_texts_and_none_runs_into_the_next() -> None:
    data = packed(
        {
            "b.txt": "x",
            "b.ann": "T1\tX 0 1\tx",
            "a.ann": "T1\tX 0 1\ty",
            "a.txt": "y",
            "c.txt": " ",
            "c.ann": "",
        }
    )
    assert rows_of(read(data)) == [[("x", "B-X")], [("y", "B-X")]]


def test_a_macos_archive_is_read_without_what_the_system_adds() -> None:
    data = packed({"a.txt": "x", "a.ann": "", "__MACOSX/._a.txt": b"\0\5\x16\7"})
    assert rows_of(read(data)) == [[("x", "O")]]


def test_a_member_without_a_name_is_not_looked_at() -> None:
    data = packed({"a.txt": "x", "a.ann": "", "b": "y"})
    directory = data.rindex(b"PK\x01\x02")
    nameless = data[:directory] + data[directory:].replace(b"b", b"\0", 1)
    assert rows_of(read(nameless)) == [[("x", "O")]]


def test_unlabelled_texts_need_no_annotations() -> None:
    corpus = read(packed({"a.txt": "x y"}), labelled=False)
    assert corpus.labels is None
    assert rows_of(corpus) == [[("x",), ("y",)]]


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        ("T1\tX 0 99\tabc", "T1: 0 99 is outside the text of 11 characters"),
        ("T1\tX 3 3\t", "T1: 3 3 is outside the text of 11 characters"),
        ("T1\tX 0 3\tabd", "T1: the text at 0 3 differs from the text of the annotation"),
        (
            "T1\tX 0 3;4 7\tabc def",
            "T1: has gaps; conflicts=resolve reads it from its first to its last character",
        ),
        ("T1\tX 4 7;0 3\tdef abc", "T1: its parts are out of order"),
        (
            "T1\tX 0 2\tab",
            "T1: begins or ends inside a token; choose another tokenizer, or extend it with conflicts=resolve",
        ),
        ("T1\tX 3 4\t ", "T1: contains no token"),
        ("T1\tX 4 11\tdef ghi", "T1: crosses the end of a line of text"),
        ("T1 X 0 3 abc", "This is not an annotation. Write T1, tab, Type 0 5, tab, text."),
        ("T1\tX -1 3\tabc", "This is not an annotation. Write T1, tab, Type 0 5, tab, text."),
        ("hello", "This is not an annotation. Write T1, tab, Type 0 5, tab, text."),
    ],
)
def test_an_annotation_that_cannot_stand_is_located(annotation: str, reason: str) -> None:
    (fault,) = refused(document("abc def\nghi", "#1\tNote T1\tx", annotation))
    assert (fault.reason, fault.line) == (f"a.ann: {reason}", 2)


def test_overlaps_are_located_or_resolved_for_the_longest() -> None:
    data = document("a b c d", "T1\tX 0 3\ta b", "T2\tY 2 7\tb c d", "T3\tZ 4 5\tc")
    assert [(fault.reason, fault.line) for fault in refused(data)] == [
        ("a.ann: T2: overlaps T1; conflicts=resolve keeps the longer one", 2)
    ]
    assert [row[1] for row in rows_of(read(data, conflicts="resolve"))[0]] == ["O", "B-Y", "I-Y", "I-Y"]


def test_gaps_are_filled_and_tokens_taken_whole_when_asked() -> None:
    data = document("abc def ghi", "T1\tX 0 3;8 9\tabc g")
    assert [row[1] for row in rows_of(read(data, conflicts="resolve"))[0]] == ["B-X", "I-X", "I-X"]


@pytest.mark.parametrize("name", ["../a.txt", "/a.txt", "x/../../a.txt", "C:/a.txt", "x\\..\\a.txt"])
def test_paths_that_lead_outside_are_refused(name: str) -> None:
    (fault,) = refused(packed({name: "x", "b.txt": "x", "b.ann": ""}))
    assert fault.reason == f"{name}: is not a path inside the archive"


def test_texts_and_annotations_must_come_in_pairs() -> None:
    assert [fault.reason for fault in refused(packed({"a.txt": "x", "b.ann": ""}))] == [
        "b.ann: no .txt file of the same name",
        "a.txt: no .ann file of the same name",
    ]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_occurs_twice_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for _ in range(2):
            out.writestr("a.txt", "x")
    assert [fault.reason for fault in refused(file.getvalue())] == ["a.txt: occurs twice"]


def test_a_bomb_costs_no_more_than_the_limit() -> None:
    bomb = packed({f"{k}.txt": b"a " * (1 << 20) for k in range(3)} | {f"{k}.ann": "" for k in range(3)})
    assert len(bomb) < 20_000
    with pytest.raises(TooLarge):
        read(bomb, max_text_bytes=5 << 20)


def test_a_document_beyond_its_limit_is_named() -> None:
    data = packed({"a.txt": b"a " * (archive.MAX_MEMBER_BYTES // 2 + 1), "a.ann": ""})
    assert refused(data, 1 << 30)[0].reason == f"a.txt: longer than {archive.MAX_MEMBER_BYTES} bytes"


def test_a_directory_beyond_its_limit_is_not_read() -> None:
    data = bytearray(packed({"a.txt": "x", "a.ann": ""}))
    data[-10:-6] = (1 << 30).to_bytes(4, "little")
    assert "its directory is larger than" in refused(bytes(data))[0].reason


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"PK\x05\x06", b"not a zip at all" * 10, b"PK\x05\x06" + b"\0" * 17]
)
def test_what_is_no_zip_is_refused(data: bytes) -> None:
    assert refused(data)[0].reason.startswith("The zip file cannot be read: ")


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [(b"a\nb\xff", 2, "not UTF-8: byte 0xFF"), (b"a\n\nb\0c", 3, "control byte 0x00")],
)
def test_bytes_that_are_no_text_are_located(content: bytes, line: int, reason: str) -> None:
    (fault,) = refused(packed({"a.txt": content, "a.ann": ""}))
    assert (fault.reason, fault.line) == (f"a.txt: {reason}", line)


def test_a_damaged_or_encrypted_member_is_named() -> None:
    data = bytearray(packed({"a.txt": "hello", "a.ann": ""}, zipfile.ZIP_STORED))
    at = data.index(b"hello")
    data[at] ^= 1
    assert refused(bytes(data))[0].reason.startswith("a.txt: Bad CRC-32")
    locked = bytearray(packed({"a.txt": "hello", "a.ann": ""}))
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    assert refused(bytes(locked))[0].reason == "a.txt: is encrypted"


def test_a_hundred_faults_are_enough() -> None:
    assert len(refused(document("a", *["x"] * 300))) == 100


def test_many_annotations_that_lie_about_a_long_text_take_no_long_time() -> None:
    text = "a" * (1 << 20)
    lines = [f"T{k}\tX 0 {1 << 20}\tshort" for k in range(99)]
    assert len(refused(document(text, *lines), 1 << 24)) == 99


def test_the_same_archive_gives_the_same_corpus() -> None:
    data = packed({"a.txt": TEXT, "a.ann": ANN})
    assert contents(read(data)) == contents(read(data))


def test_a_tokenizer_splits_texts_into_words_and_sentences() -> None:
    text = "O'Brien of Yahoo! Inc. left. He paid $1,234.56.\nYes"
    data = document(text, "T1\tORG 11 22\tYahoo! Inc.", "T2\tPER 0 7\tO'Brien")
    corpus = read(data, tokenizer=Tokenizer())
    assert corpus.tokenizer == Tokenizer()
    assert [" ".join(token for token, _ in sentence) for sentence in rows_of(corpus)] == [
        "O'Brien of Yahoo ! Inc. left .",
        "He paid $ 1,234.56 .",
        "Yes",
    ]
    assert [label for _, label in rows_of(corpus)[0]] == ["B-PER", "O", "B-ORG", "I-ORG", "I-ORG", "O", "O"]
    # Without the annotation a sentence ends after the exclamation mark.
    assert len(rows_of(read(document(text, "T2\tPER 0 7\tO'Brien"), tokenizer=Tokenizer()))) == 4


def test_the_options_name_the_tokenizer_and_old_corpora_keep_theirs() -> None:
    data = document("O'Brien left", "T1\tPER 0 7\tO'Brien")
    for options, tokenizer, tokens in (
        ({"tokens": "words"}, Tokenizer("words", 1), 4),
        ({"tokens": "blanks"}, Tokenizer("blanks", 1), 2),
        ({"tokenizer": "words"}, Tokenizer(), 2),
        ({"tokens": "words", "tokenizer": {"kind": "blanks", "version": 2}}, Tokenizer("blanks"), 2),
    ):
        corpus = formats.read([data], "brat", max_line_bytes=100, options=options)
        assert (corpus.tokenizer, corpus.tokens) == (tokenizer, tokens)


def test_an_archive_that_packs_well_is_no_binary_file() -> None:
    # Long repetitions are zero bytes when deflated.
    data = packed({"a.txt": "a " * 500_000, "a.ann": ""})
    assert formats.read([data], "brat", max_line_bytes=1 << 21).tokens == 500_000
