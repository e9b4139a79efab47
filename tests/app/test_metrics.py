"""Metrics: right with several processes, after one of them ended, and without a database."""

import dataclasses
import re
from pathlib import Path

import httpx
import pytest

from app.metrics.meters import BUCKETS, Figures, Meters
from core.settings import Settings
from core.store import jobs, models
from core.store.engine import Database
from core.store.models import NewVersion
from tests.app.servers import ProcessServer, ThreadServer
from tests.services import wait_until

VALUE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


def scraped(url: str) -> dict[str, float]:
    response = httpx.get(f"{url}/metrics", timeout=30)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    values = {}
    for line in response.text.splitlines():
        if not line.startswith("# "):
            match = VALUE.fullmatch(line)
            assert match, line
            values[line.rsplit(" ", 1)[0]] = float(match[3])
    return values


def requests(values: dict[str, float], route: str, status: int = 200) -> float:
    name = "tagsmith_http_request_duration_seconds_count"
    return values.get(f'{name}{{method="GET",route="{route}",status="{status}"}}', 0)


def test_requests_are_counted_by_route_and_not_by_address(http: httpx.Client, server: ThreadServer) -> None:
    for number in range(3):
        assert http.get(f"/models/nobody{number}").status_code == 404
    http.get("/nowhere/at/all")
    values = scraped(server.url)
    assert requests(values, "/models/{name}", 404) == 3
    assert requests(values, "none", 404) == 1
    assert not any("nobody1" in name for name in values)
    labels = 'method="GET",route="/models/{name}",status="404"'
    buckets = [
        values[f'tagsmith_http_request_duration_seconds_bucket{{{labels},le="{bound}"}}']
        for bound in [*map(repr, BUCKETS), "+Inf"]
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 3
    assert 0 < values[f"tagsmith_http_request_duration_seconds_sum{{{labels}}}"] < 30
    assert values["tagsmith_open_streams"] == 0
    assert values["tagsmith_database_up"] == 1


def test_jobs_and_aliases_are_counted_in_sql(server: ThreadServer, database: Database) -> None:
    with database.write() as conn:
        first = jobs.create(conn, kind="train", spec={})
        jobs.create(conn, kind="tune", spec={})
        assert jobs.claim(conn, first.id, "me", 30) is not None
        jobs.fail(conn, first.id, "me", {"code": "x", "message": "x"})
        new = NewVersion(
            objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
            seed=1, code_version="test", job_id=None,
        )  # fmt: skip
        models.publish(conn, "measured", new, [b"never opened"])
    assert httpx.put(f"{server.url}/models/measured/aliases/champion", json={"version": 1}).status_code == 200
    values = scraped(server.url)
    assert values['tagsmith_jobs{kind="train",state="failed"}'] == 1
    assert values['tagsmith_jobs{kind="tune",state="queued"}'] == 1
    assert values['tagsmith_job_seconds_count{kind="train",state="failed"}'] == 1
    assert 0 <= values['tagsmith_job_seconds_sum{kind="train",state="failed"}'] < 30
    assert 0 < values["tagsmith_oldest_queued_seconds"] < 60
    assert values['tagsmith_alias_version{model="measured",alias="champion"}'] == 1


def test_two_processes_answer_for_both_and_counters_survive_the_end_of_one(
    sqlite_url: str, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path / "data", database_url=sqlite_url)
    with ProcessServer(settings, tmp_path / "first.log") as first:
        with ProcessServer(settings, tmp_path / "second.log") as second:
            for _ in range(5):
                httpx.get(f"{first.url}/livez")
            for _ in range(7):
                httpx.get(f"{second.url}/livez")
            for url in (first.url, second.url):
                wait_until(lambda url=url: requests(scraped(url), "/livez") == 12, "both to be counted", 10)
            second.process.kill()
            second.process.wait()
        assert requests(scraped(first.url), "/livez") == 12
        with ProcessServer(settings, tmp_path / "third.log") as third:
            httpx.get(f"{third.url}/livez")
            assert requests(scraped(third.url), "/livez") == 13
        assert len(list((tmp_path / "data" / "metrics").glob("slot-*.json"))) == 2


def test_what_another_version_wrote_or_nobody_finished_counts_as_nothing() -> None:
    assert Figures.load(b"") == Figures()
    assert Figures.load(b"[]") == Figures()
    assert Figures.load(b'{"buckets": [1, 2]}') == Figures()
    figures = Figures({("a", ("x",)): 3}, {}, {"g": 1})
    assert Figures.load(figures.dump()) == figures


def test_gauges_of_a_process_that_ended_are_not_counted(tmp_path: Path) -> None:
    ended, running = Meters(tmp_path), Meters(tmp_path)
    for each in (ended, running):
        each.open()
    ended.figures.gauges["streams"] = 4
    ended.count("tags", "m")
    ended.save(ended.figures.dump())
    assert running.others().gauges == {"streams": 4}
    ended.close()
    assert running.others() == Figures({("tags", ("m",)): 1}, {}, {})
    again = Meters(tmp_path)
    again.open()
    assert again.figures == Figures({("tags", ("m",)): 1}, {}, {})
    again.close()
    running.close()


def test_without_a_place_to_write_a_process_counts_for_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    alone = Meters(tmp_path / "file" / "metrics")
    alone.open()
    alone.count("tags", "m")
    alone.save(alone.figures.dump())
    assert alone.others() == Figures()
    alone.close()


@pytest.mark.parametrize("wrong", ["postgresql+psycopg://nobody@127.0.0.1:1/nothing"])
def test_without_a_database_it_says_so_and_counts_on(settings: Settings, tmp_path: Path, wrong: str) -> None:
    changed = dataclasses.replace(
        settings, database_url=wrong, data_dir=tmp_path, access="anyone-without-keys"
    )
    with ThreadServer(changed) as running:
        values = scraped(running.url)
    assert values["tagsmith_database_up"] == 0
    assert not any(name.startswith("tagsmith_jobs") for name in values)
