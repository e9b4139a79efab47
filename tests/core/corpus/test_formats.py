"""The registry of formats, and the options of each."""

import pytest

from core.corpus import formats
from core.corpus.options import SegmentedOptions, stored
from core.errors import Invalid
from tests.core.corpus.samples import rows_of


def test_a_reader_is_found_by_name() -> None:
    reader = formats.reader("conll", max_line_bytes=100)
    reader.feed(b"a X\n")
    assert reader.finish().tokens == 1
    assert "conll" in formats.known_formats()


@pytest.mark.parametrize("name", ["", "CONLL", "conllx", "conll\0"])
def test_an_unknown_format_is_refused_by_name(name: str) -> None:
    with pytest.raises(Invalid, match="is not one of: conll") as caught:
        formats.reader(name, max_line_bytes=100)
    assert caught.value.code == "unknown_format"


def test_options_come_as_strings_and_are_kept_as_values() -> None:
    options = formats.parse_options("segmented", {"coding": "6"})
    assert options == SegmentedOptions(coding=6, tags="none")
    kept = stored(options)
    assert kept == {"labels": None, "repair": False, "labelled": True, "coding": 6, "tags": "none"}
    reader = formats.reader("segmented", max_line_bytes=100, options=kept)
    reader.feed(b"abc")
    assert rows_of(reader.finish()) == [[("a", "B"), ("b", "B2"), ("c", "E")]]


@pytest.mark.parametrize(
    ("name", "values", "parameter", "reason"),
    [
        ("segmented", {"coding": "5"}, "coding", "Input should be 2, 4 or 6"),
        ("segmented", {"coding": "four"}, "coding", "Input should be 2, 4 or 6"),
        ("segmented", {"tags": "yes"}, "tags", "Input should be 'none', 'strip' or 'use'"),
        (
            "segmented",
            {"codign": "4"},
            "codign",
            "not an option of segmented; its options: labels, repair, labelled, coding, tags",
        ),
        ("conll", {"coding": "4"}, "coding", "not an option of conll; its options: labels, repair, labelled"),
    ],
)
def test_a_wrong_option_is_named(name: str, values: dict[str, str], parameter: str, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        formats.parse_options(name, values)
    assert caught.value.code == "invalid_options"
    (fault,) = caught.value.faults
    assert (fault.parameter, fault.reason) == (parameter, reason)
