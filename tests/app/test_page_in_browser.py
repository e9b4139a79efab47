"""The page in a real browser: what is stored is shown, as text, whatever it looks like."""

import html
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from core.settings import Settings
from core.store import jobs, models
from core.store.engine import Database
from core.store.models import NewVersion
from tests.app.servers import ThreadServer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HARM = "<img src=x onerror=document.title='harmed'>"
NEW = NewVersion(
    objective=None, active_features=1, train_seconds=0.0, metrics={"dev": {"f1": 93.254}},
    trainer={"kind": HARM}, spec={}, corpus=None, seed=1, code_version="test", job_id=None,
)  # fmt: skip


@pytest.mark.browser
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
