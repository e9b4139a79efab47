"""What the drills do to a running stack."""

import contextlib
import json
from pathlib import Path
from typing import Any

import psutil

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.wire import Job
from tests.services import wait_until

MODEL = "drill"
#: Long enough to be hit in the middle, short enough to be run twice.
LONG_PASSES = 100


def corpus(sentences: int = 600) -> bytes:
    return b"".join(generate("references", sentences, 7))


def spec(corpus_id: str, passes: int = 3) -> dict[str, Any]:
    return {
        "model": MODEL,
        "corpus": corpus_id,
        "features": {"preset": "chunking"},
        "trainer": {"kind": "sgd-l1", "passes": passes},
        "promote": "champion",
    }


def train(client: Client, passes: int = 3) -> Job:
    """Upload, train to the end, and see that it went well."""
    job = client.wait(client.train(spec(client.upload(corpus(), name="drill").id, passes)).id)
    assert job.state == "succeeded", job.error
    return job


def start_long_job(client: Client) -> str:
    """Start a job and wait until it is some passes in."""
    job_id = client.train(spec(client.upload(corpus(2000), name="drill").id, LONG_PASSES)).id
    wait_until(lambda: _passes(client.job(job_id)) >= 3, "the third pass", 60)
    return job_id


def child_pid(stack: BackgroundStack, name: str) -> int:
    """Give the process id of a child, from the pid file the supervisor keeps."""
    path = stack.settings.data_dir / "run" / f"{name}.pid"
    wait_until(path.exists, f"{name} to run")
    return int(json.loads(path.read_text())[0])


def family(stack: BackgroundStack) -> list[psutil.Process]:
    """Give the supervisor and all that it started."""
    supervisor = psutil.Process(stack.pid)
    return [supervisor, *supervisor.children(recursive=True)]


def left(processes: list[psutil.Process]) -> list[str]:
    """Give the commands of those that still run."""
    found = []
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if each.is_running() and each.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{each.pid}: {' '.join(each.cmdline())}")
    return found


def pid_files(data_dir: Path) -> list[str]:
    return sorted(path.name for path in (data_dir / "run").glob("*.pid"))


def tag(client: Client, times: int = 1) -> None:
    """Tag one sentence over and over; any failure is raised."""
    for _ in range(times):
        tagged = client.tag(MODEL, [[["Smith", "CAP"], [",", "PUNCT"], ["1999", "NUM"]]])
        assert len(tagged.tags[0]) == 3


def _passes(job: Job) -> int:
    return int((job.progress or {}).get("pass") or 0)
