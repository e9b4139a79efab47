"""Metrics: right with several processes, after one of them ended, and without a database."""

import json
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.engine import Connection

from tagsmith.app.metrics import meters, names
from tagsmith.app.metrics.meters import BUCKETS, Meters, Totals
from tagsmith.core.jobs import control, jobs, leases
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import clock, tables
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ProcessServer, ThreadServer
from tests.services import wait_until

NEW = NewVersion(
    objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None, seed=1,
    code_version="test", job_id=None,
)  # fmt: skip


def series(name: str, labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{label}="{labels[label]}"' for label in sorted(labels))
    return f"{name}{{{inside}}}" if inside else name


def scraped(url: str) -> dict[str, float]:
    """Read the metrics with the parser of Prometheus's own client. Labels are sorted in the keys."""
    response = httpx.get(f"{url}/metrics", timeout=30)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = list(text_string_to_metric_families(response.text))
    for family in families:
        full_name = f"{family.name}_total" if family.type == "counter" else family.name
        assert names.METRICS[full_name].kind == family.type
        assert names.METRICS[full_name].help == family.documentation
    return {series(each.name, each.labels): each.value for family in families for each in family.samples}


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
        values[f'tagsmith_http_request_duration_seconds_bucket{{le="{bound}",{labels}}}']
        for bound in [*map(repr, BUCKETS), "+Inf"]
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 3
    assert values[f"tagsmith_http_request_duration_seconds_sum{{{labels}}}"] > 0
    assert values["tagsmith_open_streams"] == 0
    assert values["tagsmith_database_up"] == 1


def test_jobs_and_aliases_are_counted_in_sql(server: ThreadServer, database: Database) -> None:
    with database.write() as conn:
        first = jobs.create(conn, kind="train", spec={})
        jobs.create(conn, kind="tune", spec={})
        assert leases.claim(conn, first.id, "me", 30) is not None
        leases.fail(conn, first.id, "me", {"code": "x", "message": "x"})
        models.publish(conn, "measured", NEW, [b"never opened"])
    assert httpx.put(f"{server.url}/models/measured/aliases/champion", json={"version": 1}).status_code == 200
    values = scraped(server.url)
    assert values['tagsmith_jobs{kind="train",state="failed"}'] == 1
    assert values['tagsmith_jobs{kind="tune",state="queued"}'] == 1
    assert values['tagsmith_job_seconds_count{kind="train",state="failed"}'] == 1
    assert values['tagsmith_job_seconds_sum{kind="train",state="failed"}'] >= 0
    assert values["tagsmith_oldest_queued_seconds"] > 0
    assert values['tagsmith_alias_version{alias="champion",model="measured"}'] == 1


def test_queues_and_leases_are_told_with_their_age(server: ThreadServer, database: Database) -> None:
    began = time.monotonic()
    with database.write() as conn:
        jobs.create(conn, kind="train", spec={}, queue="quick")
        late, later, taken = (jobs.create(conn, kind="train", spec={}, queue="quick") for _ in range(3))
        now = clock.now(conn)
        _set(conn, late.id, queued_at=now - timedelta(seconds=100))
        _set(conn, later.id, queued_at=now - timedelta(seconds=40))
        assert leases.claim(conn, taken.id, "me", 30) is not None
        _set(conn, taken.id, started_at=now - timedelta(seconds=500))
    values = scraped(server.url)
    assert values['tagsmith_queue_jobs{queue="quick"}'] == 3
    passed_s = time.monotonic() - began + 1
    assert 100 <= values['tagsmith_queue_oldest_seconds{queue="quick"}'] <= 100 + passed_s
    assert values["tagsmith_oldest_queued_seconds"] >= values['tagsmith_queue_oldest_seconds{queue="quick"}']
    assert 'tagsmith_queue_jobs{queue="slow"}' in values
    assert 500 <= values["tagsmith_oldest_lease_seconds"] <= 500 + passed_s
    assert values["tagsmith_lease_overdue_seconds"] == 0
    with database.write() as conn:
        _set(conn, taken.id, lease_until=clock.now(conn) - timedelta(seconds=7))
    overdue_s = scraped(server.url)["tagsmith_lease_overdue_seconds"]
    assert 7 <= overdue_s <= 7 + time.monotonic() - began + 1
    with database.write() as conn:
        leases.fail(conn, taken.id, "me", {"code": "x", "message": "x"})
        for job in (late, later):
            control.cancel(conn, job.id)
    values = scraped(server.url)
    assert values["tagsmith_oldest_lease_seconds"] == values["tagsmith_lease_overdue_seconds"] == 0
    assert values['tagsmith_queue_jobs{queue="quick"}'] == 1


def _set(conn: Connection, job_id: str, **values: Any) -> None:
    conn.execute(tables.job.update().where(tables.job.c.id == job_id).values(**values))


def tagged(values: dict[str, float]) -> tuple[float, ...]:
    counters = ("tag_requests", "tagged_sentences", "tagged_tokens")
    return tuple(values.get(f'tagsmith_{name}_total{{model="chunker"}}', 0) for name in counters)


def tag_all_ways(url: str) -> None:
    """Tag 2 sentences of 3 tokens in each of three ways, and fail in two."""
    sentences = [[["Rockwell", "NNP"], ["said", "VBD"]], [["It", "PRP"]]]
    request = {"model": "chunker", "sentences": sentences}
    assert httpx.post(f"{url}/tag", json=request).status_code == 200
    assert httpx.post(f"{url}/tag", json=request | {"marginals": True}).status_code == 200
    assert httpx.post(f"{url}/tag", json=request | {"model": "nobody"}).status_code == 404
    lines = [{"model": "chunker"}, {"tokens": sentences[0]}, {"tokens": 7}, {"tokens": sentences[1]}]
    body = "".join(f"{json.dumps(line)}\n" for line in lines)
    answer = httpx.post(f"{url}/tag", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert len(answer.text.splitlines()) == 4


def test_two_processes_answer_for_both_and_counters_survive_the_end_of_one(
    sqlite_url: str, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path / "data", database_url=sqlite_url)
    model = samples.model_file("v1", tmp_path / "model")
    database = Database(sqlite_url)
    with database.write() as conn:
        models.publish(conn, "chunker", NEW, [model])
    database.dispose()
    with ProcessServer(settings, tmp_path / "first.log") as first:
        with ProcessServer(settings, tmp_path / "second.log") as second:
            for _ in range(5):
                httpx.get(f"{first.url}/livez")
            for _ in range(7):
                httpx.get(f"{second.url}/livez")
            tag_all_ways(first.url)
            tag_all_ways(second.url)
            for url in (first.url, second.url):
                wait_until(lambda url=url: requests(scraped(url), "/livez") == 12, "both to be counted")
                wait_until(lambda url=url: tagged(scraped(url)) == (6, 12, 18), "both to be counted")
                values = scraped(url)
                assert values["tagsmith_model_cache_misses_total"] == 2
                assert values["tagsmith_model_cache_hits_total"] == 4
                assert values["tagsmith_open_models"] == 2
                assert values["tagsmith_model_cache_bytes"] == len(model)
            second.process.kill()
            second.process.wait()
        values = scraped(first.url)
        assert (requests(values, "/livez"), tagged(values)) == (12, (6, 12, 18))
        assert values["tagsmith_open_models"] == 1
        with ProcessServer(settings, tmp_path / "third.log") as third:
            httpx.get(f"{third.url}/livez")
            values = scraped(third.url)
            assert (requests(values, "/livez"), tagged(values)) == (13, (6, 12, 18))
            assert values["tagsmith_model_cache_hits_total"] == 4
        assert len(list((tmp_path / "data" / "metrics").glob("slot-*.json"))) == 2


def test_what_another_version_wrote_or_nobody_finished_counts_as_nothing() -> None:
    assert Totals.load(b"") == Totals()
    assert Totals.load(b"[]") == Totals()
    assert Totals.load(b'{"buckets": [1, 2]}') == Totals()
    totals = Totals({("a", ("x",)): 3}, {}, {"g": 1})
    assert Totals.load(totals.dump()) == totals


def test_gauges_of_a_process_that_ended_are_not_counted(tmp_path: Path) -> None:
    ended, running = Meters(tmp_path), Meters(tmp_path)
    for each in (ended, running):
        each.open()
    ended.totals.gauges["streams"] = 4
    ended.count("tags", "m")
    ended.save(ended.totals.dump())
    assert running.sum_of_other_processes().gauges == {"streams": 4}
    ended.close()
    assert running.sum_of_other_processes() == Totals({("tags", ("m",)): 1}, {}, {})
    again = Meters(tmp_path)
    again.open()
    assert again.totals == Totals({("tags", ("m",)): 1}, {}, {})
    again.close()
    running.close()


def test_without_a_place_to_write_a_process_counts_for_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    alone = Meters(tmp_path / "file" / "metrics")
    alone.open()
    alone.count("tags", "m")
    alone.save(alone.totals.dump())
    assert alone.sum_of_other_processes() == Totals()
    alone.close()


@pytest.mark.parametrize("wrong", ["postgresql+psycopg://nobody@127.0.0.1:1/nothing"])
def test_without_a_database_it_says_so_and_counts_on(settings: Settings, tmp_path: Path, wrong: str) -> None:
    changed = settings.replace(database_url=wrong, data_dir=tmp_path, access="anyone-without-keys")
    with ThreadServer(changed) as running:
        values = scraped(running.url)
    assert values["tagsmith_database_up"] == 0
    assert not any(name.startswith("tagsmith_jobs") for name in values)


def test_labels_that_callers_invent_do_not_grow_without_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meters, "MAX_SERIES", 3)
    counted = Meters(tmp_path)
    for number in range(9):
        counted.count("tags", f"model{number}")
        counted.observe("seconds", "GET", f"/{number}", seconds=1.0)
    counted.count("tags", "model0")
    assert counted.totals.counters == {
        ("tags", ("model0",)): 2, ("tags", ("model1",)): 1, ("tags", ("model2",)): 1, ("tags", ("other",)): 6,
    }  # fmt: skip
    assert len(counted.totals.histograms) == 4
