"""From a file of one's own to a tagged sentence on the page, on a server that holds nothing yet."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tests.app.browser import Tab
from tests.app.pages import TEXT, words

pytestmark = pytest.mark.browser

MOST_CLICKS = 5


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    path = tmp_path / "my references.conll"
    path.write_bytes(words(300, 1))
    return path


def test_five_clicks_lead_from_a_file_to_a_tagged_sentence(
    start_stack: Callable[..., BackgroundStack], own_file: Path, tab: Tab, pictures: Path
) -> None:
    stack = start_stack()
    steps = 0

    def seen(step: str) -> None:
        nonlocal steps
        steps += 1
        tab.picture(pictures / f"first-model-{steps}-{step}.png")

    tab.open(stack.url)
    tab.text(".empty h2")
    seen("empty")
    tab.choose_file("[data-key='choose a file']", own_file)
    tab.wait("document.querySelector('dialog[open] .findings')?.innerText.length > 20")
    seen("inspected")
    tab.click("dialog[open] button[value=go]")
    tab.wait("document.querySelector('h1')?.innerText === 'my references'")
    tab.wait("document.querySelector('.view[data-shown] .bars')")
    seen("report")
    tab.click("a.button", saying="Train on this")
    tab.wait("document.querySelector('.view[data-shown] form')")
    seen("train")
    tab.click("button[type=submit]", saying="Start")
    tab.wait("document.querySelector('.state.succeeded')")
    tab.wait("document.querySelector('.charts polyline')")
    seen("trained")
    tab.click("a.button", saying="Try it")
    tab.wait("document.querySelector('.marked .token')")
    assert tab.clicks <= MOST_CLICKS
    seen("tried")
    # The text in the box is an example; any other is tagged as one types.
    tab.evaluate("document.querySelector('#text').select()")
    tab.evaluate("document.querySelector('#text').focus()")
    tab.type(TEXT)
    tab.wait("document.querySelector('.marked mark')?.innerText.includes('Smith')")
    assert "AUTHOR" in tab.text(".marked mark")
    seen("tagged")
    with Client(stack.url) as client:
        assert client.alias("my-references", "champion").version == 1


def test_a_file_dropped_anywhere_is_inspected_first(
    stack: BackgroundStack, own_file: Path, tab: Tab, pictures: Path
) -> None:
    tab.open(f"{stack.url}/#/jobs")
    tab.wait("document.querySelector('.view[data-shown]')")
    with Client(stack.url) as client:
        before = len(list(client.corpora()))
        tab.drop(own_file)
        tab.wait("document.querySelector('dialog[open] .findings')?.innerText.length > 20")
        tab.picture(pictures / "dropped.png")
        assert len(list(client.corpora())) == before
        tab.press("Escape")
        tab.wait("document.querySelector('dialog[open]') === null")
        assert len(list(client.corpora())) == before


def test_a_file_with_a_fault_is_refused_with_its_line(
    stack: BackgroundStack, tmp_path: Path, tab: Tab
) -> None:
    path = tmp_path / "faulty.conll"
    path.write_bytes(b"Ada\tB-PER\nLovelace\tI-PER\nwrote\n")
    tab.open(f"{stack.url}/#/corpora")
    tab.wait("document.querySelector('.view[data-shown]')")
    tab.drop(path)
    tab.wait("document.querySelector('dialog[open] .findings')?.innerText.length > 20")
    assert "Line 3" in tab.text("dialog[open] .notice li")


def test_the_sample_goes_the_same_way(stack: BackgroundStack, tab: Tab) -> None:
    tab.open(f"{stack.url}/#/corpora")
    tab.click("button", saying="Load the sample")
    tab.click("dialog[open] button[value=go]")
    tab.wait("document.querySelector('h1')?.innerText.startsWith('references')")
    assert "2,000" in tab.text(".facts")
