"""The job kind that CONTRIBUTING shows is one file: put into the package, it can be posted, run and read."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_readme import ROOT

#: Runs in its own process, because job kinds are found once per process.
SCRIPT = """
import json, sys, threading
from pathlib import Path

from tagsmith.core.jobs import kinds

folder, database_url, redis_url = sys.argv[1:]
kinds.__path__.append(folder)

import httpx
from tagsmith.core.service import messages
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.worker import run
from tagsmith.worker.context import Context
from tests.app.servers import ThreadServer

settings = Settings(data_dir=Path(folder), database_url=database_url, redis_url=redis_url)
told = {}
with ThreadServer(settings) as server, httpx.Client(base_url=server.url, timeout=60) as http:
    body = http.get("/openapi.json").json()["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]
    told["kinds"] = sorted(body["schema"]["discriminator"]["mapping"])
    told["example"] = body["examples"]["count"]["value"]
    corpus = http.post("/corpora", content=b"a X\\nb Y\\n\\nc X\\n").json()["id"]
    told["refused"] = [
        http.post("/jobs", json={"kind": "count", **wrong}).json()
        for wrong in ({}, {"corpus": "crp_missing"}, {"corpus": corpus, "extra": 1})
    ]
    job = http.post("/jobs", json={"kind": "count", "corpus": corpus}).json()
    told["held"] = http.delete(f"/corpora/{corpus}").status_code
    database, redis = Database(database_url), messages.connect(redis_url)
    context = Context(
        settings=settings, db=database, redis=redis, worker_id="here", stop=threading.Event(),
        busy=threading.Event(), send=lambda _: True, runners=run.runners(),
    )
    run.run_job(context, job["id"])
    told["job"] = http.get(f"/jobs/{job['id']}").json()
    told["events"] = [event["message"] for event in http.get(f"/jobs/{job['id']}/events").json()["data"]]
    told["table"] = http.get(f"/jobs/{job['id']}/table.csv").text
    told["plot"] = http.get(f"/jobs/{job['id']}/plot.svg").json()["code"]
    redis.close()
    database.dispose()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, sqlite_url: str, redis_url: str) -> dict[str, Any]:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## How to add a job kind")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    folder: Path = tmp_path_factory.mktemp("kinds")
    (folder / "count.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), sqlite_url, redis_url],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_it_is_documented_beside_the_others(told: dict[str, Any]) -> None:
    assert told["kinds"] == ["compare", "count", "evaluate", "rank", "tag", "train", "tune"]
    assert told["example"]["kind"] == "count"


def test_it_is_checked_when_it_is_posted(told: dict[str, Any]) -> None:
    assert [(each["status"], each["code"], each["errors"][0]["pointer"]) for each in told["refused"]] == [
        (422, "invalid_spec", "/corpus"),
        (422, "corpus_not_found", "/corpus"),
        (422, "invalid_spec", "/extra"),
    ]
    assert told["held"] == 409


def test_a_worker_runs_it_and_its_result_is_read(told: dict[str, Any]) -> None:
    job = told["job"]
    assert (job["state"], job["queue"], job["error"]) == ("succeeded", "quick", None)
    assert job["result"] == {"tokens": {"X": 2, "Y": 1}}
    assert told["events"] == ["queued", "running, attempt 1", "counting the labels of 3 tokens", "succeeded"]
    assert told["table"].split() == ["label,tokens", "X,2", "Y,1"]
    assert told["plot"] == "no_plot"
