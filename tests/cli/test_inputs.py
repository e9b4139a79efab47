"""Batches of what is read: as large as a request should be, and no later than the input comes."""

from collections.abc import Iterator

from tagsmith.cli import inputs
from tagsmith.cli.inputs import TextLine

BLOCKS = [b"\xef\xbb\xbfAda", b" wrote.\r\n\r\n\xc3", b"\xa4rger\nend"]


def test_lines_have_their_places_in_the_text_with_what_is_removed() -> None:
    assert list(inputs.read_lines(BLOCKS)) == [
        [TextLine("Ada wrote.", 1), TextLine("", 13)],
        [TextLine("ärger", 15)],
        [TextLine("end", 21, "")],
    ]
    text = b"".join(BLOCKS).decode()
    assert all(
        text[line.begin :].startswith(line.text) for lines in inputs.read_lines(BLOCKS) for line in lines
    )


def test_lines_and_sentences_come_in_batches_of_one_size() -> None:
    assert [len(batch) for batch in inputs.read_lines([b"line\n" * 1200])] == [500, 500, 200]
    sentences = inputs.read_sentences([b"a\nb\nc\n\n" * 1200])
    assert [len(batch) for batch in sentences] == [500, 500, 200]


def test_batches_of_long_lines_have_few_of_them() -> None:
    long = b"x" * (inputs.BATCH_CHARACTERS // 2)
    assert [len(batch) for batch in inputs.read_lines([(long + b"\n") * 5])] == [2, 2, 1]
    assert [len(batch) for batch in inputs.read_sentences([(long + b"\n\n") * 3])] == [2, 1]


def test_what_is_complete_is_given_before_more_is_read() -> None:
    def typed() -> Iterator[bytes]:
        yield b"Ada\n\n"
        raise AssertionError("read too early")

    assert next(inputs.read_lines(typed())) == [TextLine("Ada", 0), TextLine("", 4)]
    assert [each.rows for each in next(inputs.read_sentences(typed()))] == [[["Ada"]]]
    assert next(inputs.read_objects(iter([b'"Ada"\n']))) == {"text": "Ada"}
