"""Every example of the README, the quickstart, the tutorials and how-to pages runs and prints what the page shows."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.core.service.settings import Settings
from tests.core.model.strings import StringCrf
from tests.docs.pages import BLOCK, ROOT, Reader, examples, same

DOCS = ROOT / "docs"
#: The quickstart shows version 1 of `people`, so it comes before the README, which shows no number.
PAGES = [
    DOCS / "quickstart.md",
    ROOT / "README.md",
    *sorted(DOCS.glob("tutorials/*.md")),
    *sorted(DOCS.glob("how-to/*.md")),
]
#: Labels and weights of a model that other programs could have written.
THEIRS = (["B-NP", "B-VP"], {":Rockwell": [2.0, 0.0], ":said": [0.0, 2.0]}, [0.5] * 4)


def _bring_models(folder: Path) -> None:
    """Write the models of CRF++ and Wapiti that pages take for granted."""
    labels, singles, pairs = THEIRS
    for name, syntax, unigram, bigram in (
        ("model.txt", "crf++", "U", "B"),
        ("model.wapiti", "wapiti", "u", "b"),
    ):
        weights = {f"{unigram}{value}": weight for value, weight in singles.items()}
        crf = StringCrf(labels, [f"{unigram}:%x[0,0]", bigram], weights, {bigram: pairs}, syntax)
        (folder / name).write_bytes(crf.wapiti() if syntax == "wapiti" else crf.crfpp().encode())


@pytest.fixture(scope="module")
def docs_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundStack]:
    """A stack of its own: pages show numbers of versions, which other tests would change."""
    settings = Settings.from_env({}, {"port": 0, "data_dir": tmp_path_factory.mktemp("pages")})
    with BackgroundStack(settings) as started:
        yield started


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.stem)
def test_the_examples_of_a_page_print_what_it_shows(
    page: Path, docs_stack: BackgroundStack, tmp_path: Path
) -> None:
    _bring_models(tmp_path)
    reader = Reader(tmp_path, docs_stack.url)
    try:
        reader.follow(page)
    finally:
        reader.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_block_of_a_page_is_left_out(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^```(?:sh|python)\b", text, re.MULTILINE)) == len(BLOCK.findall(text))
    for other in re.findall(r"<!-- run by (\S+) -->", text):
        assert page.name in (ROOT / other).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a 1\n", "a 1\n"),
        ("dev F1 97.31 (PER 98.0)\n", "dev F1 97.11 (PER 99.4)\n"),
        ("2,381 features, 383 kB in 4.4 s\n", "2,402 features, 12 MB in 120 s\n"),
        ("F1  SPANS\n9.5     3\n", "F1     SPANS\n9.45       3\n"),
        ("first\n...\nlast\n", "first\none\ntwo\nlast\n"),
        ("job ... ended\n", "job a8f3k2 ended\n"),
        ("+3.58  ████  UW-1:in\n", "+3.49  ███  UW-1:in\n"),
    ],
)
def test_small_differences_between_machines_are_accepted(shown: str, printed: str) -> None:
    assert same(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a 1\n", "a 2\n"),
        ("dev F1 97.31\n", "dev F1 77.31\n"),
        ("2,381 features\n", "4,762 features\n"),
        ("Ada Lovelace\tPER\t0.98\n", "Ada Lovelace\tLOC\t0.98\n"),
        ("Ada Lovelace\tPER\t0.98\n", "Ada Lovelace\tPER\t0.50\n"),
        ("first\n...\nlast\n", "first\none\ntwo\n"),
        ("a\n", "a\nb\n"),
        ("a\n", ""),
    ],
)
def test_other_differences_are_not(shown: str, printed: str) -> None:
    assert not same(shown, printed)
