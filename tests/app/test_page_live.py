"""Curves while a job runs: new points within a second, the whole curve after a reload, two tabs that agree."""

import re
import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tests.app.browser import Browser, Tab
from tests.app.pages import words
from tests.services import wait_until

pytestmark = pytest.mark.browser

#: A point is seen at most so long after its event.
LAG_S = 1.0
WATCHED_S = 3.0
CHART = "document.querySelector('.charts .chart')"
#: Notes, every 20 ms, the time and the last pass that the curve shows.
WATCH = """new Promise((resolve) => {
    const seen = [];
    const timer = setInterval(() => {
        const pass = Number(/passes \\S+ to (\\S+);/.exec(CHART.ariaLabel)?.[1].replace(",", ""));
        if (pass !== seen.at(-1)?.[1]) seen.push([Date.now() / 1000, pass]);
    }, 20);
    setTimeout(() => { clearInterval(timer); resolve(seen); }, MILLISECONDS);
})"""


@pytest.fixture
def running(stack: BackgroundStack) -> Iterator[tuple[Client, str]]:
    """A job whose passes take a few hundredths of a second each."""
    with Client(stack.url) as client:
        corpus = client.upload(words(1000, 1), name="thousand")
        spec = {"model": "live", "corpus": corpus.id, "dev": {"fraction": 0.1}, "features": {"preset": "ner"}}
        job = client.train({**spec, "trainer": {"kind": "sgd-l1", "passes": 100_000}})
        yield client, job.id
        if not client.job(job.id).done:
            client.cancel(job.id)
            client.wait(job.id, check=False)


def shown(tab: Tab) -> tuple[int, int]:
    """The first and the last pass of the curve."""
    label = tab.wait(f"{CHART}?.ariaLabel?.includes('passes') && {CHART}.ariaLabel")
    found = re.search(r"passes (\S+) to (\S+);", label)
    assert found is not None, label
    first, last = (int(each.replace(",", "")) for each in found.groups())
    return first, last


def passes_of(client: Client, job_id: str) -> dict[int, float]:
    """When each pass of a job was over."""
    return {
        event.data["pass"]: datetime.fromisoformat(event.at).timestamp()
        for event in client.events(job_id)
        if event.type == "pass"
    }


def test_a_point_is_drawn_within_a_second_of_its_event(
    stack: BackgroundStack, running: tuple[Client, str], tab: Tab
) -> None:
    client, job_id = running
    tab.open(f"{stack.url}/#/jobs/{job_id}")
    shown(tab)
    script = WATCH.replace("CHART", CHART).replace("MILLISECONDS", str(int(1000 * WATCHED_S)))
    seen: list[tuple[float, int]] = tab.evaluate(script)
    ended = passes_of(client, job_id)
    assert len(seen) > 5, "the curve does not move"
    # The first time that a pass or a later one was seen, for all passes that ended while the test watched.
    lags = []
    for number, at in ended.items():
        if seen[0][0] < at < seen[-1][0] - LAG_S:
            drawn = next((when for when, last in seen if last >= number), float("inf"))
            lags.append(drawn - at)
    assert len(lags) > 5
    assert max(lags) < LAG_S, sorted(lags)[-5:]


def test_a_reload_shows_the_whole_curve_and_two_tabs_agree(
    stack: BackgroundStack, running: tuple[Client, str], browser: Browser, tab: Tab
) -> None:
    client, job_id = running
    tab.open(f"{stack.url}/#/jobs/{job_id}")
    before = shown(tab)
    tab.reload()
    tab.wait(f"{CHART}?.ariaLabel?.includes('passes 1 to')")
    first, last = shown(tab)
    assert first == before[0] == 1
    assert last >= before[1]
    other = browser.tab()
    other.open(f"{stack.url}/#/jobs/{job_id}")
    shown(other)
    time.sleep(0.5)  # both follow the running job for a while
    client.cancel(job_id)
    client.wait(job_id, check=False)
    newest = max(passes_of(client, job_id))
    for each in (tab, other):
        each.wait("document.querySelector('.state.cancelled')")
        each.wait(f"{CHART}.ariaLabel.replaceAll(',', '').includes('passes 1 to {newest};')")
    assert tab.evaluate(f"{CHART}.ariaLabel") == other.evaluate(f"{CHART}.ariaLabel")
    assert tab.evaluate(f"{CHART}.querySelector('polyline').outerHTML") == other.evaluate(
        f"{CHART}.querySelector('polyline').outerHTML"
    )
    # Every pass has its point, up to as many as a chart can show.
    points = tab.evaluate(f"{CHART}.querySelector('polyline').points.length")
    assert points == min(newest, 600)
    other.close()


def test_a_button_is_clicked_however_often_the_page_is_drawn_while_it_is_pressed(
    stack: BackgroundStack, running: tuple[Client, str], tab: Tab
) -> None:
    _, job_id = running
    tab.open(f"{stack.url}/#/jobs/{job_id}")
    _, last = shown(tab)

    def drawn_again() -> None:
        wait_until(lambda: shown(tab)[1] > last + 5, "five more passes")

    tab.click(f"[data-key='cancel {job_id}']", held=drawn_again)
    assert "What it has learned is lost" in tab.text("dialog[open] p")
    tab.click("dialog[open] button[value='']")
    # What was held back is drawn.
    number = int(tab.text(".progress").split("pass ")[1].split()[0])
    assert number > last + 5
