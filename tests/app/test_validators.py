"""Entity tags: 304 for who has it already, another tag once it changed."""

import httpx

from tagsmith.core.jobs import control, jobs
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import assert_problem


def test_a_job_has_a_tag_that_changes_with_it(http: httpx.Client, database: Database) -> None:
    with database.write() as conn:
        job = jobs.create(conn, kind="train", spec={})
    path = f"/jobs/{job.id}"
    first = http.get(path)
    tag = first.headers["etag"]
    assert tag.startswith('W/"')
    again = http.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert again.headers["x-request-id"]
    assert http.get(path, headers={"If-None-Match": f'"other", {tag}'}).status_code == 304
    assert http.get(path, headers={"If-None-Match": '"other"'}).content == first.content
    with database.write() as conn:
        control.cancel(conn, job.id)
    changed = http.get(path, headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["state"]) == (200, "cancelled")
    assert changed.headers["etag"] != tag


def test_lists_and_corpora_have_one_problems_have_none_and_texts_keep_their_own(http: httpx.Client) -> None:
    corpus = http.post("/corpora", content=samples.TEXT).headers["location"]
    for path in (corpus, f"{corpus}/report", "/corpora", "/models", "/jobs", "/lexicons", "/keys"):
        tag = http.get(path).headers["etag"]
        assert http.get(path, headers={"If-None-Match": tag}).status_code == 304, path
    missing = http.get("/models/nobody", headers={"If-None-Match": "*"})
    assert_problem(missing, 404, "model_not_found")
    assert "etag" not in missing.headers
    assert http.get(f"{corpus}/content").headers["etag"].startswith('"')
    assert "etag" not in http.get("/livez").headers
