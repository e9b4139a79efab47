import pytest

from core.corpus import formats
from core.corpus.conll import ConllReader
from core.errors import Invalid


def test_conll_is_read_through_the_registry() -> None:
    reader = formats.reader("conll", max_line_bytes=100)
    assert isinstance(reader, ConllReader)
    reader.feed(b"a X\n")
    assert reader.finish().tokens == 1
    assert "conll" in formats.known_formats()


@pytest.mark.parametrize("name", ["", "CONLL", "conllu ", "xml"])
def test_an_unknown_format_names_the_known_ones(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        formats.reader(name, max_line_bytes=100)
    assert caught.value.code == "unknown_format"
    assert "conll" in caught.value.faults[0].reason
