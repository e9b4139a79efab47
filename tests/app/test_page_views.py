"""Every view in a real browser, wide and narrow, light and dark: nothing is cut off, covered or unreadable."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.service.settings import Settings
from tests.app.browser import Browser, Tab
from tests.app.pages import TEXT, Filled, fill
from tests.app.servers import ThreadServer

pytestmark = pytest.mark.browser

WIDE, NARROW = (1280, 900), (390, 844)
#: Both layouts and both palettes are checked by axe-core; the other two differ from them in colours or layout only.
LOOKS = [(WIDE, "light", True), (NARROW, "dark", True), (WIDE, "dark", False), (NARROW, "light", False)]
VIEWS = {
    "playground": "#/playground?text={text}",
    "two-versions": "#/playground?model=references:1&with=references:2&text={text}",
    "corpora": "#/corpora",
    "corpus": "#/corpora/{corpus}",
    "train": "#/train?corpus={corpus}",
    "jobs": "#/jobs",
    "job-train": "#/jobs/{train}",
    "job-evaluate": "#/jobs/{evaluate}",
    "job-compare": "#/jobs/{compare}",
    "job-tune": "#/jobs/{tune}",
    "job-rank": "#/jobs/{rank}",
    "models": "#/models",
    "model": "#/models/references",
    "difference": "#/models/references/diff/1/2",
    "compare": "#/compare?versions=references:1,references:2",
}
EMPTY = ["playground", "corpora", "train", "jobs", "models", "compare"]
SHOWN = "document.querySelector('.view[data-shown]')"
#: The view of a job has its first events, with the warnings at its beginning, soon after it is shown.
LOGGED = "!document.querySelector('.log') || document.querySelector('.log li')"
#: Elements that end to the right of the window, other than in a box that scrolls.
CUT_OFF = """[...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".scroll, .unseen"))
    .map((each) => `${each.tagName} ${each.className} ${each.getBoundingClientRect().right}`)"""
#: On a phone, tables become cards or are narrow enough: only the matrix of labels and drawings of trees scroll.
SCROLLS = """[...document.querySelectorAll(".scroll:not(:has(.confusion, svg))")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.getAttribute("aria-label"))"""
#: Sizes of text below 13 pixels.
TINY = """[...document.querySelectorAll("body *")].filter((each) =>
    [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
    && parseFloat(getComputedStyle(each).fontSize) < 13).map((each) => `${each.tagName} ${each.textContent}`)"""
#: Whether the end of the view can be scrolled above the navigation.
UNCOVERED = """(() => {
    scrollTo(0, document.documentElement.scrollHeight);
    const view = document.querySelector(".view").getBoundingClientRect();
    const nav = document.querySelector("#nav").getBoundingClientRect();
    return nav.top > innerHeight / 2 ? view.bottom <= nav.top : nav.right <= view.left;
})()"""


@pytest.fixture(scope="module")
def filled(stack: BackgroundStack) -> Filled:
    with Client(stack.url) as client:
        return fill(client, stack.url)


@pytest.fixture(scope="module")
def empty_url(sqlite_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ThreadServer(Settings(data_dir=tmp_path_factory.mktemp("data"), database_url=sqlite_url)) as server:
        server.ready()
        yield server.url


def look_at(tab: Tab, picture: Path, *, axe: bool) -> None:
    """Check what is seen, and take a picture of the whole view."""
    tab.wait(SHOWN)
    tab.wait(LOGGED)
    assert tab.evaluate(CUT_OFF) == []
    assert tab.evaluate(SCROLLS) == []
    assert tab.evaluate(TINY) == []
    assert tab.evaluate(UNCOVERED)
    if axe:
        assert tab.barriers() == []
    width, height = tab.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    tab.resize(width, height)
    tab.evaluate("new Promise(requestAnimationFrame)")
    tab.picture(picture)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_whole_and_open_to_all(tab: Tab, filled: Filled, pictures: Path, name: str) -> None:
    address = VIEWS[name].format(text=quote(TEXT), corpus=filled.corpus, **filled.jobs)
    for size, theme, axe in LOOKS:
        tab.resize(*size)
        tab.theme(theme)
        tab.open(f"{filled.url}/{address}")
        look_at(tab, pictures / f"{name}-{size[0]}-{theme}.png", axe=axe)


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_view_leads_on(tab: Tab, empty_url: str, pictures: Path, name: str) -> None:
    for size, theme, axe in LOOKS[:2]:
        tab.resize(*size)
        tab.theme(theme)
        tab.open(f"{empty_url}/#/{name}")
        look_at(tab, pictures / f"empty-{name}-{size[0]}-{theme}.png", axe=axe)
        assert tab.text(".empty button, .empty a.button") in {"Choose a file", "Train a model"}


def test_an_address_survives_a_reload_and_the_way_back(tab: Tab, filled: Filled) -> None:
    tab.open(f"{filled.url}/#/models/references?version=1")
    assert tab.text("h2.section") == "Version 1"
    tab.reload()
    assert tab.text("h2.section") == "Version 1"
    tab.click("#nav a", saying="Jobs")
    tab.wait("document.querySelector('h1')?.innerText === 'Jobs'")
    tab.evaluate("history.back()")
    assert tab.text("h2.section") == "Version 1"
    tab.open(f"{filled.url}/#model/references")  # an address of earlier versions of the page
    tab.wait("document.querySelector('h1')?.innerText === 'references'")


def test_an_unknown_address_says_so(tab: Tab, filled: Filled) -> None:
    tab.open(f"{filled.url}/#/nowhere")
    assert "nothing at this address" in tab.text(".notice[role=alert]:not([hidden])")
    tab.open(f"{filled.url}/#/models/nobody")
    assert "nobody" in tab.text(".view .notice")


def test_a_chart_tells_values_zooms_and_hides_series(tab: Tab, filled: Filled) -> None:
    tab.open(f"{filled.url}/#/compare?versions=references:1,references:2")
    plot = ".charts .chart"
    tab.wait(f"document.querySelectorAll('{plot} polyline').length >= 2")
    tab.point(plot, 0.6)
    tip = tab.text(".tip:not([hidden])")
    assert re.search(r"passes \d+\s+references:1\s+[\d.]+\s+references:2\s+[\d.]+", tip)
    # By keyboard: the last pass, then the one before.
    tab.evaluate(f"document.querySelector('{plot}').focus()")
    for _ in range(10):
        tab.press("ArrowRight")
    assert tab.text(".tip:not([hidden])").startswith("passes 10")
    tab.press("ArrowLeft")
    assert tab.text(".tip:not([hidden])").startswith("passes 9")
    dots = f"document.querySelector('{plot}').querySelectorAll('.line circle').length"
    before = tab.evaluate(dots)
    tab.point(plot, 0.4, drag_to=0.75)
    tab.wait(f"{dots} < {before}")
    tab.click(".chart-box button", saying="Reset zoom")
    tab.wait(f"{dots} === {before}")
    tab.click(".legend button", saying="references:2")
    tab.wait(f"document.querySelector('{plot}').querySelectorAll('polyline').length === 1")
    assert (
        tab.evaluate("document.querySelectorAll('.legend button')[1].getAttribute('aria-pressed')") == "false"
    )


def test_a_job_lays_another_run_over_its_curve(tab: Tab, filled: Filled) -> None:
    tab.open(f"{filled.url}/#/jobs/{filled.jobs['train']}")
    other = tab.wait("document.querySelector(\"select[aria-label='Add another run']\")?.options[1]?.value")
    tab.pick("select[aria-label='Add another run']", other)
    tab.wait("document.querySelectorAll('.charts .chart-box:first-child polyline').length === 2")
    assert tab.text(".legend").split() == ["references:2", "references:1"]


def test_a_word_is_explained_and_the_text_keeps_its_spacing(tab: Tab, filled: Filled, pictures: Path) -> None:
    text = "Smith,  J.\n1998.  Learning \U0001f389\U0001f389  to  tag."  # an emoji is two units of JavaScript's strings
    tab.open(f"{filled.url}/#/playground?text={quote(text)}")
    tab.wait("document.querySelector('.marked mark')")
    shown = """[...document.querySelectorAll(".marked")].map((line) => {
        const copy = line.cloneNode(true);
        copy.querySelectorAll(".type").forEach((each) => each.remove());
        return copy.textContent;
    }).join("\\n")"""
    assert tab.evaluate(shown) == text
    tab.click("[data-token='0']")
    assert "is B-AUTHOR" in tab.text(".explanation")
    assert tab.evaluate("document.querySelectorAll('.balance .bar').length") > 3
    tab.picture(pictures / "explanation.png")
    # By keyboard: from the first word to the next.
    tab.evaluate("document.querySelector('[data-token=\"0\"]').focus()")
    tab.press("ArrowRight")
    tab.press("Enter")
    tab.wait("document.querySelector('.explanation strong')?.innerText === ','")


def test_two_versions_differ_where_they_differ(tab: Tab, filled: Filled) -> None:
    tab.open(f"{filled.url}/#/playground?model=references:1&with=references:2&text={quote(TEXT)}")
    tab.wait("document.querySelectorAll('.tagged').length === 2")
    spans = """[...document.querySelectorAll(".tagged")].map((side) => [...side.querySelectorAll("mark")].map((each) =>
        [each.innerText.replace(/ (>?\\d+ %)?\\s*(differs)?$/, ""), each.classList.contains("differs")]))"""
    first, second = tab.evaluate(spans)
    texts = [{text for text, _ in side} for side in (first, second)]
    assert texts[0] != texts[1]
    assert {text for text, differs in first if differs} == texts[0] - texts[1]
    assert {text for text, differs in second if differs} == texts[1] - texts[0]


def test_the_same_call_can_be_copied(tab: Tab, filled: Filled) -> None:
    text = "Smith, J. It's Ada."
    tab.open(f"{filled.url}/#/playground?text={quote(text)}")
    tab.click("summary", saying="Copy as")
    assert f"curl --fail-with-body {filled.url}/tag" in tab.text(".snippet")
    tab.click(".snippets button", saying="Command line")
    tab.wait("document.querySelector('.snippet').innerText.includes('| tagsmith tag ')")
    assert "It'\\''s Ada.'" in tab.text(".snippet")
    tab.click(".snippets button", saying="Python")
    tab.wait("document.querySelector('.snippet').innerText.includes('import')")
    assert "AUTHOR" in printed(tab.text(".snippet"))


def printed(program: str) -> str:
    """What a Python program prints."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_the_command_beside_the_form_is_the_whole_job(tab: Tab, filled: Filled) -> None:
    tab.open(f"{filled.url}/#/train?corpus={filled.corpus}")
    tab.wait("document.querySelector('.snippet')?.innerText.includes('\"corpus\": \"references-train\"')")
    tab.click("summary", saying="More")
    tab.click("#trainer-passes")
    tab.type("3")
    tab.click(".snippets button", saying="Command line")
    assert tab.text(".snippet") == (
        "tagsmith train references-train --model references --preset ner --trainer sgd-l1 --dev 0.1 "
        "--set trainer.passes=3 --watch"
    )
    tab.click(".snippets button", saying="Python")
    tab.wait("document.querySelector('.snippet').innerText.includes('import')")
    assert "3/3" in printed(tab.text(".snippet"))


def test_two_browsers_of_one_address_show_the_same(browser: Browser, filled: Filled) -> None:
    tabs = [browser.tab(), browser.tab()]
    for tab in tabs:
        tab.open(f"{filled.url}/#/models/references")
        tab.wait(SHOWN)
    assert tabs[0].evaluate("document.body.innerText") == tabs[1].evaluate("document.body.innerText")
    for tab in tabs:
        tab.close()
