"""A backup that is made while clients work has everything that was acknowledged before it began."""

import contextlib
import hashlib
import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.app.cli.backup import restore, save
from tagsmith.client import ApiError, Client
from tagsmith.wire.names import TERMINAL_STATES
from tests import services
from tests.drills import actions
from tests.drills.checker import check
from tests.drills.history import History, Promotion, Submission, Upload

MODEL = "saved"


class Load:
    """Clients that work until they are stopped. Each has names of its own."""

    def __init__(self, url: str, history: History) -> None:
        self.history = history
        self._url = url
        self._over = threading.Event()
        self._errors: list[Exception] = []
        work = [self._upload] * 2 + [self._promote]
        self._threads = [threading.Thread(target=self._run, args=(each, n)) for n, each in enumerate(work)]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._threads:
            each.join()
        assert self._errors == []

    def _run(self, work: Callable[[Client, str], None], number: int) -> None:
        try:
            with Client(self._url) as client:
                for turn in itertools.takewhile(lambda _: not self._over.is_set(), itertools.count()):
                    work(client, f"{number}-{turn}")
        except Exception as error:  # noqa: BLE001  # shown by the test
            self._errors.append(error)

    def _upload(self, client: Client, name: str) -> None:
        content = f"{name} O\n\n".encode() * 5_000
        upload = Upload(f"upload-{name}", hashlib.sha256(content).hexdigest())
        self.history.uploads.append(upload)
        upload.id = client.upload(content, name=upload.name).id

    def _promote(self, client: Client, name: str) -> None:
        version = 1 + int(name.split("-")[1]) % 2
        move = Promotion(MODEL, "champion", version)
        self.history.moves.append(move)
        move.seq = client.promote(MODEL, version).seq


def silent(_name: str, _fraction: float) -> None:
    """No progress."""


def train(client: Client, history: History, corpus_id: str, seed: int, passes: int) -> str:
    spec = {"model": MODEL, "corpus": corpus_id, "seed": seed, "features": {"preset": "chunking"}}
    job_id = client.train({**spec, "trainer": {"kind": "sgd-l1", "passes": passes}}).id
    history.jobs.append(Submission(MODEL, seed, job_id))
    return job_id


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_what_was_acknowledged_before_a_backup_began_is_in_the_restored_service(
    dialect: str,
    start_stack: Callable[..., BackgroundStack],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    urls: list[str | None] = [None, None]
    if dialect == "postgresql":
        databases: services.Databases = request.getfixturevalue("postgres_databases")
        urls = [databases.create(), databases.create()]
    stack = start_stack(data_dir=tmp_path / "a", database_url=urls[0], workers=1)
    history = History()
    with Client(stack.url) as client:
        corpus_id = client.upload(actions.corpus(1000), name="drill").id
        for seed in (1, 2):
            client.wait(train(client, history, corpus_id, seed, 2))
        # One that runs during the backup, and one that waits behind it.
        running = train(client, history, corpus_id, 3, 30)
        train(client, history, corpus_id, 4, 2)
        services.wait_until(lambda: client.job(running).progress is not None, "the long job to run")

        with Load(stack.url, history):
            services.wait_until(lambda: sum(each.id is not None for each in history.uploads) > 4, "uploads")
            acknowledged = history.copy()
            save.save(stack.settings, tmp_path / "backup", silent)
            before = len(history.uploads)
            services.wait_until(lambda: len(history.uploads) > before + 2, "uploads after the backup")
        with contextlib.suppress(ApiError):  # it has ended meanwhile
            client.cancel(running)
    stack.stop()
    target = stack.settings.replace(data_dir=tmp_path / "b", database_url=urls[1] or "")
    if dialect == "sqlite":
        target = target.replace(database_url=f"sqlite:///{tmp_path}/b/tagsmith.db")
    restore.restore(target, tmp_path / "backup", silent)
    restored = start_stack(data_dir=tmp_path / "b", database_url=urls[1])
    with Client(restored.url) as client:
        for each in acknowledged.jobs:
            client.wait(each.id or "")
        assert all(job.state in TERMINAL_STATES for job in client.jobs())
        findings = check(client, acknowledged)
        assert not findings, findings
        assert client.version(MODEL, 4)
    restored.stop()
    for url in filter(None, urls):
        request.getfixturevalue("postgres_databases").drop(url)
