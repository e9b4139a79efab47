"""Log lines: JSON, with the ids of the request or job that they are written for."""

import asyncio
import contextvars
import io
import json
import logging

import pytest

from tagsmith.core.service import logs


@pytest.fixture
def lines() -> io.StringIO:
    return io.StringIO()


def written(lines: io.StringIO, act: object) -> list[dict[str, object]]:
    handler = logging.StreamHandler(lines)
    handler.setFormatter(logs.JsonLines())
    logger = logging.getLogger("test.logs")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    contextvars.copy_context().run(act, logger)  # type: ignore[arg-type]
    return [json.loads(line) for line in lines.getvalue().splitlines()]


def test_what_is_bound_is_in_every_line_and_what_is_said_in_the_line_wins(lines: io.StringIO) -> None:
    def act(logger: logging.Logger) -> None:
        logs.bind()
        logger.info("before")
        logs.bind(request_id="req-1", job_id="job_1")
        logger.info("during")
        logger.info("about another", extra={"job_id": "job_2"})
        logs.bind()
        logger.info("after")

    before, during, other, after = written(lines, act)
    assert "request_id" not in before
    assert (during["event"], during["request_id"], during["job_id"]) == ("during", "req-1", "job_1")
    assert (other["request_id"], other["job_id"]) == ("req-1", "job_2")
    assert "request_id" not in after


def test_a_context_that_was_copied_keeps_the_ids(lines: io.StringIO) -> None:
    def act(logger: logging.Logger) -> None:
        logs.bind(request_id="req-1")
        context = contextvars.copy_context()
        logs.bind(request_id="req-2")
        context.run(logger.info, "from a thread of the first")

    assert [line["request_id"] for line in written(lines, act)] == ["req-1"]


def test_lines_that_are_told_are_those_of_records_and_come_before_what_is_logged_later(
    lines: io.StringIO,
) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logger = logging.getLogger("test.told")
    fields = {"request_id": "req-1", "status": 200, "path": "/\ud800"}

    async def act() -> None:
        logs.bind()  # whatever ran in this process before
        for _ in range(3):
            logs.write_later(logger, "request", fields)
        logs.write_later(logger, "request", fields)
        logger.info("request", extra=fields)
        root.handlers[0].flush()
        assert lines.getvalue().count("\n") == 5
        logs.write_later(logger, "last", fields)

    try:
        logs.configure(logging.INFO, lines)
        asyncio.run(act())
        root.handlers[0].flush()  # as the end of the process does
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
    *requests, last = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert last["event"] == "last"
    times = [line.pop("at") for line in requests]
    assert times == sorted(times)
    assert all(len(at) == len("2026-01-31T08:00:00.000Z") and at.endswith("Z") for at in times)
    wanted = {"level": "info", "logger": "test.told", "event": "request", **fields}
    assert requests == [wanted] * 5
