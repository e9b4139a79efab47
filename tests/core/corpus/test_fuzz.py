"""Whatever bytes come, a reader gives a corpus or an error that says where; it neither breaks nor hangs."""

import gzip
import io
import zipfile

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.corpus.content_encoding import decoded
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.report import report
from tagsmith.core.corpus.report import warm as warm_report
from tests.core.corpus.samples import contents, pieces

#: Pieces that text in one of the formats is made of, so that nonsense comes close to sense.
FRAGMENTS = {
    "conll": [
        "a",
        "B-X",
        " ",
        "\t",
        "\n",
        "\n\n",
        "-DOCSTART-",
        "\r\n",
        "\ufeff",
        "é",
        "\x00",
        "\x0b",
        "I-X",
        "O",
    ],
    "conllu": [
        "1",
        "2",
        "-",
        ".",
        "\t",
        "\n",
        "\n\n",
        "#",
        "_",
        "a",
        "\t_",
        "0",
        "9" * 12,
        " ",
        "\r",
        "1\ta" + "\t_" * 8,
        "1\ta" + "\t_" * 4 + "\t2\tx\t_\t_\n",
        "2\ta" + "\t_" * 4 + "\t0\tx\t_\t_\n",
        "2\ta" + "\t_" * 4 + "\t1\tx\t_\t_\n",
        "# weight = ",
    ],
    "conllx": [
        "1",
        "2",
        "\t",
        "\n",
        "\n\n",
        "#",
        "id=7|",
        "\t_",
        "\r",
        "1\ta\t_\tN\tN\tid=1\t0\tROOT\t_\t_\n",
        "2\tb\t_\tN\tN\tc=d|id=2\t1\tmod\t_\t_\n",
        "2\tb\t_\tN\tN\t_\t3\tmod\t_\t_\n",
        "3\tc\t_\tN\tN\t_\t2\tmod\t_\t_\n",
    ],
    "segmented": ["a", "/", "/n", " ", "\u3000", "\n", "字", "\r\n", "\ufeff", "\t", "\x7f", "\xe3"],
    "spans": [
        '{"text":"ab. c",',
        '"spans":[',
        "[0,2",
        ',"X"]',
        "]}",
        "\n",
        "{",
        "}",
        ",",
        "null",
        '"',
        "\\n",
        "-1",
        "9",
    ],
}

OPTIONS: dict[str, st.SearchStrategy[dict[str, str]]] = {
    "conll": st.just({}),
    "conllu": st.sampled_from(
        [{}, {"columns": "id,form,misc", "label": "feats"}, {"columns": "form,upos", "label": "tree"}]
    ),
    "conllx": st.sampled_from([{}, {"columns": "feats", "drop_feats": "c,id"}, {"label": "head"}]),
    "segmented": st.fixed_dictionaries(
        {"coding": st.sampled_from(["2", "4", "6"]), "tags": st.sampled_from(["none", "strip", "use"])}
    ),
    "spans": st.fixed_dictionaries({"conflicts": st.sampled_from(["refuse", "resolve"])}),
    "brat": st.fixed_dictionaries(
        {"tokens": st.sampled_from(["words", "blanks"]), "conflicts": st.sampled_from(["refuse", "resolve"])}
    ),
}

LABELS = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.sampled_from(["iob1", "iob2", "bioes", "bilou", "bmes"]),
        "repair": st.sampled_from(["true", "false"]),
        "labelled": st.sampled_from(["true", "false"]),
    },
)

quick = settings(max_examples=150, deadline=2000, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Kernels are there before anything is timed."""
    formats.warm()
    warm_report()


def located(error: TagsmithError) -> TagsmithError:
    """An error that has a code and places, or says that there was too much."""
    assert error.code
    assert error.faults or error.code == "corpus_too_large"
    return error


def read(name: str, data: bytes, size: int, options: dict[str, str]) -> Corpus | TagsmithError:
    """Read and look at a corpus, or give the error; any other error is ours."""
    try:
        corpus = formats.read(
            pieces(data, size), name, max_line_bytes=40, max_text_bytes=1 << 16, options=options
        )
    except TagsmithError as error:
        return located(error)
    report(corpus)
    return corpus


def text_of(name: str) -> st.SearchStrategy[bytes]:
    fragments = st.sampled_from([fragment.encode() for fragment in FRAGMENTS[name]])
    return st.lists(st.one_of(fragments, st.binary(max_size=2)), max_size=40).map(b"".join)


@pytest.mark.parametrize("name", FRAGMENTS)
@quick
@given(data=st.data())
def test_any_text_is_read_or_refused_with_lines_however_it_is_cut(name: str, data: st.DataObject) -> None:
    text = data.draw(text_of(name))
    options = data.draw(OPTIONS[name]) | data.draw(LABELS)
    whole = read(name, text, max(1, len(text)), options)
    cut = read(name, text, data.draw(st.integers(1, 9)), options)
    if isinstance(whole, Corpus):
        assert isinstance(cut, Corpus)
        assert contents(cut) == contents(whole)
        return
    assert isinstance(cut, TagsmithError)
    assert cut.faults == whole.faults
    if whole.code in {"invalid_corpus", "empty_corpus"}:
        assert all(fault.line and 1 <= fault.line <= text.count(b"\n") + 1 for fault in whole.faults)


@pytest.mark.parametrize("name", FRAGMENTS)
@quick
@given(data=st.data())
def test_what_is_read_can_be_written_or_is_refused_by_name(name: str, data: st.DataObject) -> None:
    found = read(name, data.draw(text_of(name)), 1000, {})
    if not isinstance(found, Corpus):
        return
    other = data.draw(st.sampled_from(formats.known_formats()))
    try:
        b"".join(formats.write(found, other, data.draw(LABELS)))
    except TagsmithError as error:
        located(error)


def _packed(members: list[tuple[str, bytes]]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members:
            out.writestr(name, content)
    return file.getvalue()


annotation = st.lists(
    st.sampled_from(
        [
            "T1",
            "\t",
            "X",
            " ",
            "0",
            "1",
            "2",
            "3",
            ";",
            "\n",
            "R1",
            "ab",
            "a",
            "T1\tX 0 2\tab\n",
            "-",
            "9" * 10,
        ]
    ),
    max_size=15,
).map("".join)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@quick
@given(
    members=st.lists(
        st.tuples(
            st.sampled_from(["a.txt", "a.ann", "b.txt", "b.ann", "../c.txt", "d", "e.txt/"]),
            st.one_of(annotation.map(str.encode), st.binary(max_size=8), st.just(b"ab c\nab")),
        ),
        max_size=5,
    ),
    flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 10_000),
    data=st.data(),
)
def test_any_archive_is_read_or_refused(
    members: list[tuple[str, bytes]], flips: list[tuple[int, int]], cut: int, data: st.DataObject
) -> None:
    packed = bytearray(_packed([("a.txt", b"ab c\nab"), *members][: len(members) or 1]))
    for place, value in flips:
        packed[place % len(packed)] = value
    damaged = bytes(packed if cut > len(packed) else packed[:cut])
    read("brat", damaged, 100, data.draw(OPTIONS["brat"]) | data.draw(LABELS))


@quick
@given(data=st.binary(max_size=60))
def test_any_bytes_are_no_archive(data: bytes) -> None:
    assert isinstance(read("brat", data, 7, {}), TagsmithError)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@quick
@given(data=st.data())
def test_any_bytes_are_decoded_or_refused(encoding: str, data: st.DataObject) -> None:
    plain = data.draw(st.binary(max_size=50))
    packed = bytearray(gzip.compress(plain, mtime=0) if encoding == "gzip" else zstandard.compress(plain))
    for place, value in data.draw(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3)):
        packed[place % len(packed)] = value
    try:
        found = b"".join(decoded(pieces(bytes(packed), 5), encoding, max_decoded_bytes=1000))
    except TagsmithError as error:
        located(error)
        return
    assert len(found) <= 1000
