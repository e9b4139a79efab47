"""Workers whose time of day is wrong, or jumps: leases do not depend on it."""

from datetime import timedelta
from pathlib import Path

import pytest

from tagsmith.core.store import clock
from tagsmith.core.store.states import State
from tests.clocks import Clock
from tests.services import wait_until
from tests.worker.processes import DEADLINE_S, Stack

HOUR_S = 3600


@pytest.fixture
def wrong(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


def renewed(stack: Stack, job_id: str) -> None:
    """Wait until the lease of a job is renewed twice: one renewal may have begun before the clock jumped."""
    for _ in range(2):
        before = stack.job(job_id).lease_until
        wait_until(lambda before=before: stack.job(job_id).lease_until != before, "a heartbeat", DEADLINE_S)


def test_a_clock_that_jumps_takes_no_job_from_a_worker_and_hides_no_loss(
    stack: Stack, wrong: Clock, tmp_path: Path
) -> None:
    """On SQLite all processes see the jumps; with PostgreSQL one machine is wrong, and the server is right."""
    gate = tmp_path / "gate"
    first = stack.start(environment=wrong.environment)
    job_id = stack.submit("jump", passes=3, pass_s=0, hold_until=str(gate))
    stack.await_pass(job_id, 1)
    other = stack.start(environment=wrong.environment if stack.db.dialect == "sqlite" else {})
    wait_until(lambda: "worker starts" in other.log(), "the other worker", DEADLINE_S)
    for jump_s in (HOUR_S, -HOUR_S):
        wrong.jump(jump_s)
        renewed(stack, job_id)
    assert stack.states(job_id) == ["queued", "running"]
    first.kill()
    gate.touch()
    job = stack.await_state(job_id, State.SUCCEEDED)
    assert stack.states(job_id) == ["queued", "running", "queued", "running", "succeeded"]
    # Queued an hour in the future of the clock, and nobody sends its message.
    stack.await_state(stack.create("forgotten", passes=1, pass_s=0), State.SUCCEEDED)
    if stack.db.dialect == "postgresql":
        with stack.db.read() as conn:
            now = clock.now(conn)
        times = [event.at for event in stack.events(job.id)]
        assert times == sorted(times)
        assert now - timedelta(seconds=HOUR_S) < times[0] < times[-1] <= now
