"""The page in a real browser: what is stored is shown, as text, whatever it looks like; every button does its deed."""

import html
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.jobs import jobs
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.wire import Alias
from tests.app.browser import CHROMIUM, Browser
from tests.app.keys import Callers
from tests.app.servers import ThreadServer
from tests.services import wait_until

pytestmark = pytest.mark.browser

HARM = "<img src=x onerror=document.title='harmed'>"
NEW = NewVersion(
    objective=None, active_features=1, train_seconds=0.0, metrics={"dev": {"f1": 93.254}},
    trainer={"kind": HARM}, spec={}, corpus=None, seed=1, code_version="test", job_id=None,
)  # fmt: skip
ENDLESS = {"kind": "sgd-l1", "passes": 100_000}

#: Of a dialog: the button that does it and the one that does not.
DO, LEAVE = "dialog[open] button[value=go]", "dialog[open] button[value='']"


def test_what_is_stored_is_shown_and_does_nothing(sqlite_url: str, tmp_path: Path) -> None:
    assert CHROMIUM is not None, "there is no Chromium here: apt-get install chromium"
    database = Database(sqlite_url)
    with database.write() as conn:
        for _ in range(2):
            models.publish(conn, "chunker", NEW, [b"never opened"])
        job = jobs.create(conn, kind="train", spec={"trainer": {"kind": HARM}}, model="chunker")
        assert jobs.claim(conn, job.id, "me", 30) is not None
        jobs.fail(conn, job.id, "me", {"code": "x", "message": HARM})
    database.dispose()
    with ThreadServer(Settings(data_dir=tmp_path / "data", database_url=sqlite_url)) as server:
        alias = f"{server.url}/models/chunker/aliases/champion"
        for version in (1, 2):
            moved = httpx.put(alias, json={"version": version, "reason": HARM})
            assert moved.status_code == 200
        # The time is the browser's own: it runs ahead whenever the page waits for nothing but a timer.
        command = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
        ]
        command += ["--virtual-time-budget=8000", "--dump-dom", server.url]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    page = done.stdout
    assert "<title>Tagsmith</title>" in page
    assert not re.search(r"<img|onerror=[^&]*>", page)
    shown = html.escape(HARM, quote=False)
    assert page.count(f"<td>{shown}</td>") == 4  # the trainers of two versions, the reasons of two moves
    assert f'<p class="fault" role="alert">{shown}</p>' in page
    assert page.count("93.25") == 2
    assert "champion → version 2" in page
    assert ">Back to 1</button>" in page


@pytest.fixture(scope="module")
def client(stack: BackgroundStack) -> Iterator[Client]:
    with Client(stack.url) as made:
        yield made


@pytest.fixture(scope="module")
def corpus(client: Client) -> str:
    return client.upload(b"".join(generate("references", 100, 1)), name="references").id


@pytest.fixture(scope="module")
def artifact(client: Client, corpus: str) -> bytes:
    trained = client.wait(client.train({"model": "made", "corpus": corpus}).id)
    assert trained.state == "succeeded", trained.error
    return client.artifact("made", 1)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as started:
        yield started
        # What the server refuses is logged by the browser itself; nothing else may go wrong.
        refusals = [each for each in started.complaints if "the server responded with a status of 4" in each]
        assert started.complaints == refusals


@pytest.fixture
def name(client: Client, artifact: bytes, request: pytest.FixtureRequest) -> str:
    """A model of the test's own with three versions; `champion` stood for each in turn."""
    made = re.sub(r"[^a-z]+", "-", request.node.name)[-60:].strip("-")
    for version in (1, 2, 3):
        client.import_model(made, artifact)
        client.promote(made, version)
    return made


def champion(client: Client, name: str) -> Alias:
    return client.alias(name, "champion")


def until(client: Client, job_id: str, state: str) -> None:
    wait_until(lambda: client.job(job_id).state == state, f"the job to be {state}")


def test_roll_back_undoes_one_move_and_says_so(
    stack: BackgroundStack, client: Client, browser: Browser, name: str
) -> None:
    browser.open(f"{stack.url}/#model/{name}")
    back = f"[data-key='back {name}@champion']"
    assert browser.text(back) == "Roll back to 2"
    browser.click(back)
    assert browser.text("dialog[open] p") == f"Return champion of {name} from version 3 to version 2?"
    browser.type("a customer complained")
    browser.click(DO)
    assert browser.text("#model-said") == "champion stands for version 2 now."
    assert champion(client, name).version == 2
    newest = client.history(name)[0]
    assert (newest.action, newest.reason) == ("rollback", "a customer complained")
    # By keyboard, and without a reason. Then there is nothing before.
    browser.wait(f"document.querySelector({back!r})?.innerText === 'Roll back to 1'")
    browser.click(back)
    browser.wait("document.querySelector('dialog[open]')")
    browser.press("Enter")
    wait_until(lambda: champion(client, name).version == 1, "the alias to move")
    browser.wait("document.querySelector('h4').innerText.trim() === 'champion → version 1'")
    assert client.history(name)[0].reason is None


def test_any_earlier_move_can_be_gone_back_to(
    stack: BackgroundStack, client: Client, browser: Browser, name: str
) -> None:
    browser.open(f"{stack.url}/#model/{name}")
    browser.click(f"[data-key='back {name}@champion 1']")
    assert browser.text("dialog[open] p").endswith("from version 3 to version 1?")
    browser.click(DO)
    assert browser.text("#model-said .done") == "champion stands for version 1 now."
    moved = client.history(name)[0]
    assert (champion(client, name).version, moved.action, moved.to_seq) == (1, "rollback", 1)


@pytest.mark.parametrize("how", ["button", "key"])
def test_a_dialog_that_is_left_does_nothing_and_gives_the_focus_back(
    stack: BackgroundStack, client: Client, browser: Browser, name: str, how: str
) -> None:
    browser.open(f"{stack.url}/#model/{name}")
    for key in (f"back {name}@champion", f"promote {name}:1"):
        browser.click(f"[data-key='{key}']")
        browser.wait("document.querySelector('dialog[open]')")
        # Meanwhile the page is drawn anew, and the button with it.
        browser.evaluate(f"(window.pressed = document.querySelector(\"[data-key='{key}']\")) && 1")
        browser.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        browser.wait("!window.pressed.isConnected")
        if how == "button":
            browser.click(LEAVE)
        else:
            browser.press("Escape")
        browser.wait("document.querySelector('dialog[open]') === null")
        browser.wait(f"document.activeElement.dataset.key === '{key}'")
    assert champion(client, name).seq == 3
    assert browser.evaluate("document.querySelector('#model-said').innerText") == ""


def test_what_somebody_moved_meanwhile_is_not_moved_again(
    stack: BackgroundStack, client: Client, browser: Browser, name: str
) -> None:
    browser.open(f"{stack.url}/#model/{name}")
    for seq, version, key in ((4, 2, f"back {name}@champion"), (5, 3, f"promote {name}:1")):
        browser.click(f"[data-key='{key}']")
        browser.wait("document.querySelector('dialog[open]')")
        client.promote(name, version, reason="meanwhile")
        browser.click(DO)
        assert "nothing was changed" in browser.text("#model-said .fault")
        assert (champion(client, name).version, champion(client, name).seq) == (version, seq)
        # What was said is still there when the page has been read again, and a new try would be of what it shows.
        browser.wait(f"document.querySelectorAll('.alias tbody tr').length === {seq}")
        assert "nothing was changed" in browser.text("#model-said .fault")
    browser.click(f"[data-key='promote {name}:1']")
    browser.click(DO)
    assert browser.text("#model-said .done") == "champion stands for version 1 now."
    assert champion(client, name).version == 1


def test_promote_moves_an_alias_or_makes_one(
    stack: BackgroundStack, client: Client, browser: Browser, name: str
) -> None:
    browser.open(f"{stack.url}/#model/{name}")
    browser.click(f"[data-key='promote {name}:1']")
    browser.wait("document.activeElement.value === 'champion'")
    browser.press("Tab")
    browser.type("better for names")
    browser.press("Enter")
    assert browser.text("#model-said .done") == "champion stands for version 1 now."
    newest = client.history(name)[0]
    assert (newest.action, newest.to_version, newest.reason) == ("move", 1, "better for names")
    # What is typed replaces the name that is offered; one that cannot be is refused before it is sent.
    browser.click(f"[data-key='promote {name}:2']")
    browser.wait("document.activeElement.value === 'champion'")
    browser.type("Not A Name")
    browser.press("Enter")
    assert browser.evaluate("document.querySelector('dialog[open] input').validity.patternMismatch")
    browser.evaluate("document.querySelector('dialog[open] input').select()")
    browser.type("next")
    browser.press("Enter")
    assert browser.text("#model-said .done") == "next stands for version 2 now."
    assert {each.alias: each.version for each in client.aliases(name)} == {"champion": 1, "next": 2}


def test_a_promotion_that_the_policy_refuses_says_why(
    stack: BackgroundStack, client: Client, browser: Browser, name: str
) -> None:
    client.set_policy(name, promotion={"minimum": 90})
    browser.open(f"{stack.url}/#model/{name}")
    browser.click(f"[data-key='promote {name}:1']")
    browser.click(DO)
    assert "policy" in browser.text("#model-said .fault")
    assert champion(client, name).version == 3


def test_a_job_is_paused_resumed_cancelled_and_tried_again(
    stack: BackgroundStack, client: Client, browser: Browser, corpus: str
) -> None:
    job = client.train({"model": "long", "corpus": corpus, "trainer": ENDLESS})
    browser.open(f"{stack.url}/#job/{job.id}")
    browser.wait(
        "document.querySelector('#job .state.running') && document.querySelector('#job progress').value > 0"
    )
    browser.click(f"[data-key='pause {job.id}']")
    until(client, job.id, "paused")
    browser.wait("document.querySelector('#job .state.paused')")
    assert browser.evaluate("document.querySelector('#job small').innerText").endswith("of 100000")
    browser.click(f"[data-key='resume {job.id}']")
    until(client, job.id, "running")
    browser.click(f"[data-key='cancel {job.id}']")
    browser.click(LEAVE)
    browser.wait("document.querySelector('#job .state.running')")
    assert client.job(job.id).state == "running"
    browser.click(f"[data-key='cancel {job.id}']")
    assert "What it has learned is lost" in browser.text("dialog[open] p")
    browser.click(DO)
    until(client, job.id, "cancelled")
    browser.click(f"[data-key='retry {job.id}']")
    browser.wait(f"location.hash.startsWith('#job/') && !location.hash.endsWith('{job.id}')")
    again = client.job(browser.evaluate("location.hash").removeprefix("#job/"))
    assert again.retry_of == job.id
    browser.click(f"[data-key='cancel {again.id}']")
    browser.click(DO)
    until(client, again.id, "cancelled")
    browser.wait("document.querySelector('#job .state.cancelled')")
    assert browser.evaluate("document.querySelector('#job-said').innerText") == ""


def test_a_job_that_ended_meanwhile_cannot_be_cancelled_and_the_page_says_so(
    stack: BackgroundStack, client: Client, browser: Browser, corpus: str
) -> None:
    stop = {"max_seconds": 3}
    job = client.train({"model": "short", "corpus": corpus, "trainer": ENDLESS, "stop": stop})
    browser.open(f"{stack.url}/#job/{job.id}")
    browser.click(f"[data-key='cancel {job.id}']")
    browser.wait("document.querySelector('dialog[open]')")
    until(client, job.id, "succeeded")
    browser.click(DO)
    assert "Cannot cancel" in browser.text("#job-said .fault")
    browser.wait("document.querySelector('#job .state.succeeded')")
    assert "Cannot cancel" in browser.text("#job-said .fault")
    assert client.job(job.id).state == "succeeded"


def test_a_key_is_asked_for_until_there_is_one(sqlite_url: str, tmp_path: Path, browser: Browser) -> None:
    database = Database(sqlite_url)
    settings = Settings(data_dir=tmp_path / "data", database_url=sqlite_url)
    with ThreadServer(settings) as server:
        server.ready()
        callers = Callers(database, server.url)
        token = callers.token("read")
        wait_until(lambda: httpx.get(f"{server.url}/models").status_code == 401, "keys to be in force")
        browser.open(server.url)
        browser.wait("document.querySelector('#key-dialog[open]')")
        browser.press("Escape")
        assert "asks for a key" in browser.text("#notice")
        browser.click("#change-key")
        browser.type("not a key")
        browser.press("Enter")
        browser.wait("document.querySelector('#key-reason').innerText.includes('key')")
        browser.wait(
            "document.querySelector('#key-dialog[open]') && document.querySelector('#key-input').value === ''"
        )
        browser.type(token)
        browser.press("Enter")
        browser.wait(
            "document.querySelector('#notice').hidden && document.querySelector('#job-list').innerText"
        )
        assert browser.evaluate("document.querySelector('#key-dialog').open") is False
    database.dispose()
