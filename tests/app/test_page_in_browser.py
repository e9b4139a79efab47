"""The page in a real browser: what is stored is shown, as text, whatever it looks like; every button does its deed."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.jobs import jobs, leases
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.wire import Alias
from tests.app.browser import Tab
from tests.app.keys import Callers
from tests.app.pages import ENDLESS, words
from tests.app.servers import ThreadServer
from tests.services import wait_until
from tests.tagsmith.test_files import NAMES

pytestmark = pytest.mark.browser

HARM = "<img src=x onerror=document.title='harmed'>"
NEW = NewVersion(
    objective=None, active_features=1, train_seconds=0.0, metrics={"dev": {"f1": 93.254}},
    trainer={"kind": HARM}, spec={}, corpus=None, seed=1, code_version="test", job_id=None,
)  # fmt: skip

#: Of a dialog: the button that does it and the one that does not.
DO, LEAVE = "dialog[open] button[value=go]", "dialog[open] button[value='']"
FAULT = "#model-said .notice"


def test_what_is_stored_is_shown_and_does_nothing(sqlite_url: str, tmp_path: Path, tab: Tab) -> None:
    database = Database(sqlite_url)
    with database.write() as conn:
        for _ in range(2):
            models.publish(conn, "chunker", NEW, [b"never opened"])
        job = jobs.create(conn, kind="train", spec={"trainer": {"kind": HARM}}, model="chunker")
        assert leases.claim(conn, job.id, "me", 30) is not None
        leases.fail(conn, job.id, "me", {"code": "x", "message": HARM})
    database.dispose()
    with ThreadServer(Settings(data_dir=tmp_path / "data", database_url=sqlite_url)) as server:
        server.ready()  # a browser complains of a server that is not
        with Client(server.url) as client:
            client.upload(f"{HARM.replace(' ', '_')}\tB-<b>x</b>\n".encode(), name=HARM)
            for version in (1, 2):
                client.promote("chunker", version, reason=HARM)
        shown = {
            "#/models/chunker": 4,  # the trainers of two versions, the reasons of two moves
            "#/models": 1,
            "#/jobs": 1,
            f"#/jobs/{job.id}": 3,  # the fault, the trainer, the spec
            "#/corpora": 1,
        }
        for address, times in shown.items():
            tab.open(f"{server.url}/{address}")
            tab.wait("document.querySelector('.view[data-shown]')")
            assert tab.evaluate("document.body.textContent").count(HARM) >= times, address
            assert tab.evaluate("document.querySelectorAll('main img, main b > b').length") == 0
            assert "Tagsmith" in tab.evaluate("document.title")
        tab.open(f"{server.url}/#/models/chunker")
        tab.wait("document.querySelector('.view[data-shown]')")
        assert tab.evaluate("document.body.innerText").count("93.25") == 2


@pytest.fixture(scope="module")
def client(stack: BackgroundStack) -> Iterator[Client]:
    with Client(stack.url, retries=0) as made:
        yield made


@pytest.fixture(scope="module")
def corpus(client: Client) -> str:
    return client.upload(words(100, 1), name="hundred").id


@pytest.fixture(scope="module")
def artifact(client: Client, corpus: str) -> bytes:
    trained = client.wait(client.train({"model": "made", "corpus": corpus}).id)
    assert trained.state == "succeeded", trained.error
    return client.artifact("made", 1)


@pytest.fixture
def name(client: Client, artifact: bytes, request: pytest.FixtureRequest) -> str:
    """A model of the test's own with three versions; `champion` pointed to each in turn."""
    made = re.sub(r"[^a-z]+", "-", request.node.name)[-60:].strip("-")
    for version in (1, 2, 3):
        client.import_model(made, artifact)
        client.promote(made, version)
    return made


def champion(client: Client, name: str) -> Alias:
    return client.alias(name, "champion")


def until(client: Client, job_id: str, state: str) -> None:
    wait_until(lambda: client.job(job_id).state == state, f"the job to be {state}")


def toasted(tab: Tab, text: str) -> None:
    """Wait for a message about what was done."""
    tab.wait(f"[...document.querySelectorAll('.toast')].some((each) => each.innerText === {text!r})")


def test_roll_back_undoes_one_move_and_says_what_changes(
    stack: BackgroundStack, client: Client, tab: Tab, name: str
) -> None:
    tab.open(f"{stack.url}/#/models/{name}")
    back = f"[data-key='back {name}@champion']"
    assert tab.text(back) == "Roll back to v2"
    tab.click(back)
    assert tab.text("dialog[open] p") == f"Return champion of {name} from version 3 to version 2?"
    assert f"{name}@champion: v3 → v2" in tab.text("dialog[open] .consequences")
    tab.type("a customer complained")
    tab.click(DO)
    toasted(tab, "champion points to version 2 now.")
    assert champion(client, name).version == 2
    newest = client.history(name)[0]
    assert (newest.action, newest.reason) == ("rollback", "a customer complained")
    # By keyboard, and without a reason. Then there is nothing before.
    tab.wait(f"document.querySelector({back!r})?.innerText === 'Roll back to v1'")
    tab.click(back)
    tab.wait("document.querySelector('dialog[open]')")
    tab.press("Enter")
    wait_until(lambda: champion(client, name).version == 1, "the alias to move")
    tab.wait("document.querySelector('.alias h2').innerText === 'champion → v1'")
    assert client.history(name)[0].reason is None


def test_any_earlier_move_can_be_gone_back_to(
    stack: BackgroundStack, client: Client, tab: Tab, name: str
) -> None:
    tab.open(f"{stack.url}/#/models/{name}")
    tab.click(f"[data-key='back {name}@champion 1']")
    assert tab.text("dialog[open] p").endswith("from version 3 to version 1?")
    tab.click(DO)
    toasted(tab, "champion points to version 1 now.")
    moved = client.history(name)[0]
    assert (champion(client, name).version, moved.action, moved.to_seq) == (1, "rollback", 1)


@pytest.mark.parametrize("how", ["button", "key"])
def test_a_dialog_that_is_left_does_nothing_and_gives_the_focus_back(
    stack: BackgroundStack, client: Client, tab: Tab, name: str, how: str
) -> None:
    tab.open(f"{stack.url}/#/models/{name}")
    for key in (f"back {name}@champion", f"promote {name}:1"):
        tab.click(f"[data-key='{key}']")
        tab.wait("document.querySelector('dialog[open]')")
        if how == "button":
            tab.click(LEAVE)
        else:
            tab.press("Escape")
        tab.wait("document.querySelector('dialog[open]') === null")
        tab.wait(f"document.activeElement.dataset.key === '{key}'")
    assert champion(client, name).seq == 3
    assert tab.evaluate("document.querySelector('#model-said').innerText") == ""


def test_what_somebody_moved_meanwhile_is_not_moved_again(
    stack: BackgroundStack, client: Client, tab: Tab, name: str
) -> None:
    tab.open(f"{stack.url}/#/models/{name}")
    for seq, version, key in ((4, 2, f"back {name}@champion"), (5, 3, f"promote {name}:1")):
        tab.click(f"[data-key='{key}']")
        tab.wait("document.querySelector('dialog[open]')")
        client.promote(name, version, reason="meanwhile")
        tab.click(DO)
        assert "nothing was changed" in tab.text(FAULT)
        assert (champion(client, name).version, champion(client, name).seq) == (version, seq)
        # What was said is still there when the page has been read again, and a new try would be of what it shows.
        tab.wait(f"document.querySelectorAll('.timeline li').length === {seq}")
        assert "nothing was changed" in tab.text(FAULT)
    tab.click(f"[data-key='promote {name}:1']")
    tab.click(DO)
    toasted(tab, "champion points to version 1 now.")
    assert champion(client, name).version == 1


def test_the_page_names_corpora_as_the_client_does(stack: BackgroundStack, tab: Tab) -> None:
    tab.open(stack.url)
    named = f"import('/page/components/upload.js').then((made) => {[*NAMES]}.map(made.corpusName))"
    assert tab.evaluate(named) == [*NAMES.values()]


def test_promote_moves_an_alias_or_makes_one(
    stack: BackgroundStack, client: Client, tab: Tab, name: str
) -> None:
    tab.open(f"{stack.url}/#/models/{name}")
    tab.click(f"[data-key='promote {name}:1']")
    tab.wait("document.activeElement.value === 'champion'")
    tab.press("Tab")
    tab.type("better for names")
    tab.press("Enter")
    toasted(tab, "champion points to version 1 now.")
    newest = client.history(name)[0]
    assert (newest.action, newest.to_version, newest.reason) == ("move", 1, "better for names")
    # What is typed replaces the name that is offered; one that cannot be is refused before it is sent.
    tab.click(f"[data-key='promote {name}:2']")
    tab.wait("document.activeElement.value === 'champion'")
    tab.type("Not A Name")
    tab.press("Enter")
    assert tab.evaluate("document.querySelector('dialog[open] input').validity.patternMismatch")
    tab.evaluate("document.querySelector('dialog[open] input').select()")
    tab.type("next")
    tab.press("Enter")
    toasted(tab, "next points to version 2 now.")
    assert {each.alias: each.version for each in client.aliases(name)} == {"champion": 1, "next": 2}


def test_a_promotion_that_the_policy_refuses_says_why(
    stack: BackgroundStack, client: Client, tab: Tab, name: str
) -> None:
    client.set_policy(name, promotion={"minimum": 90})
    tab.open(f"{stack.url}/#/models/{name}")
    tab.click(f"[data-key='promote {name}:1']")
    tab.click(DO)
    assert "policy" in tab.text(FAULT)
    assert champion(client, name).version == 3


def test_a_job_is_paused_resumed_cancelled_and_tried_again(
    stack: BackgroundStack, client: Client, tab: Tab, corpus: str
) -> None:
    job = client.train({"model": "long", "corpus": corpus, "trainer": ENDLESS})
    tab.open(f"{stack.url}/#/jobs/{job.id}")
    tab.wait("document.querySelector('.state.running') && document.querySelector('progress').value > 0")
    tab.click(f"[data-key='pause {job.id}']")
    until(client, job.id, "paused")
    tab.wait("document.querySelector('.state.paused')")
    assert "of 100000" in tab.text(".progress")
    tab.click(f"[data-key='resume {job.id}']")
    until(client, job.id, "running")
    tab.click(f"[data-key='cancel {job.id}']")
    tab.click(LEAVE)
    tab.wait("document.querySelector('.state.running')")
    assert client.job(job.id).state == "running"
    tab.click(f"[data-key='cancel {job.id}']")
    assert "What it has learned is lost" in tab.text("dialog[open] p")
    tab.click(DO)
    until(client, job.id, "cancelled")
    tab.click(f"[data-key='retry {job.id}']")
    tab.wait(f"location.hash.startsWith('#/jobs/') && !location.hash.endsWith('{job.id}')")
    again = client.job(tab.evaluate("location.hash").removeprefix("#/jobs/"))
    assert again.retry_of == job.id
    tab.click(f"[data-key='cancel {again.id}']")
    tab.click(DO)
    until(client, again.id, "cancelled")
    tab.wait("document.querySelector('.state.cancelled')")
    assert tab.evaluate("document.querySelectorAll('.view .notice').length") == 0


def test_a_job_that_ended_meanwhile_cannot_be_cancelled_and_the_page_says_so(
    stack: BackgroundStack, client: Client, tab: Tab, corpus: str
) -> None:
    stop = {"max_seconds": 3}
    job = client.train({"model": "short", "corpus": corpus, "trainer": ENDLESS, "stop": stop})
    tab.open(f"{stack.url}/#/jobs/{job.id}")
    tab.click(f"[data-key='cancel {job.id}']")
    tab.wait("document.querySelector('dialog[open]')")
    until(client, job.id, "succeeded")
    tab.click(DO)
    assert "Cannot cancel" in tab.text(".view .notice")
    tab.wait("document.querySelector('.state.succeeded')")
    assert "Cannot cancel" in tab.text(".view .notice")
    assert client.job(job.id).state == "succeeded"


def test_a_corpus_is_deleted_after_a_question(stack: BackgroundStack, client: Client, tab: Tab) -> None:
    made = client.upload(words(10, 3), name="to be deleted")
    tab.open(f"{stack.url}/#/corpora/{made.id}")
    tab.click("[data-key='delete']")
    tab.click(LEAVE)
    tab.click("[data-key='delete']")
    tab.click(DO)
    toasted(tab, "to be deleted is deleted.")
    tab.wait("location.hash === '#/corpora'")
    assert httpx.get(f"{stack.url}/corpora/{made.id}").status_code == 404


def test_a_spec_that_is_refused_shows_the_fault_at_its_field(
    stack: BackgroundStack, tab: Tab, corpus: str
) -> None:
    tab.open(f"{stack.url}/#/train?corpus={corpus}")
    tab.click("summary", saying="More")
    tab.click("#trainer-passes")
    tab.type("0")
    tab.click("button[type=submit]", saying="Start")
    assert "1" in tab.text("#trainer-passes-fault")
    assert tab.evaluate("document.querySelector('#trainer-passes').getAttribute('aria-invalid')") == "true"
    assert tab.evaluate("location.hash").startswith("#/train")


def test_a_key_is_asked_for_until_there_is_one(sqlite_url: str, tmp_path: Path, tab: Tab) -> None:
    database = Database(sqlite_url)
    settings = Settings(data_dir=tmp_path / "data", database_url=sqlite_url)
    with ThreadServer(settings) as server:
        server.ready()
        callers = Callers(database, server.url)
        token = callers.token("read")
        wait_until(lambda: httpx.get(f"{server.url}/models").status_code == 401, "keys to be in force")
        tab.open(f"{server.url}/#/models")
        tab.wait("document.querySelector('#key-dialog[open]')")
        tab.press("Escape")
        assert "asks for a key" in tab.text(".view .notice")
        tab.click("#change-key")
        tab.type("not a key")
        tab.press("Enter")
        tab.wait("document.querySelector('#key-dialog[open] #key-reason')?.innerText.includes('key')")
        tab.wait("document.querySelector('#key-dialog[open] #key-input')?.value === ''")
        tab.type(token)
        tab.press("Enter")
        tab.wait("document.querySelector('.view[data-shown]')")
        assert tab.evaluate("document.querySelector('#key-dialog') === null")
    database.dispose()
