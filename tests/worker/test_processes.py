"""Real worker processes, killed, stopped and cut off."""

import json
import time
from pathlib import Path

from tagsmith.core.jobs import control
from tagsmith.core.registry import aliases
from tagsmith.core.service import messages
from tagsmith.core.store.states import State
from tagsmith.worker import lease
from tests.services import RedisServer, wait_until
from tests.worker.processes import DEADLINE_S, Stack


def test_a_job_runs_to_its_end_and_followers_hear_all_that_sql_has(stack: Stack) -> None:
    stack.start()
    job_id = stack.submit("plain", passes=20, pass_s=0.03, slices=3)
    job = stack.await_state(job_id, State.SUCCEEDED)
    assert (job.attempt, job.result, job.lease_owner) == (1, {"version": 1}, None)
    assert job.progress == {"pass": 20, "passes": 20, "fraction": 1.0, "eta_seconds": 0.0}
    found = stack.events(job_id)
    assert [event.data["pass"] for event in found if event.type == "pass"] == list(range(1, 21))
    assert [event.message for event in found if event.type == "state"] == [
        "queued", "running, attempt 1", "succeeded",
    ]  # fmt: skip
    assert [version.job_id for version in stack.versions("plain")] == [job_id]
    with stack.db.read() as conn:
        assert aliases.get(conn, "plain", "champion").version == 1
    wait_until(lambda: b"succeeded" in stack.stream(job_id)[-1].get(b"event", b""), "the last event in Redis")
    told = [json.loads(entry[b"event"]) for entry in stack.stream(job_id) if b"event" in entry]
    assert told == [event.as_dict() for event in found[1:]]


def test_a_worker_killed_in_mid_job_loses_it_to_another_and_one_version_comes_out(
    stack: Stack, tmp_path: Path
) -> None:
    stack.start()
    stack.start()
    gate = tmp_path / "gate"
    job_id = stack.submit("killed", passes=12, pass_s=0, hold_until=str(gate))
    stack.await_pass(job_id, 1)
    stack.worker_of(job_id).kill()
    gate.touch()
    job = stack.await_state(job_id, State.SUCCEEDED, State.FAILED)
    assert (job.state, job.attempt, job.error) == (State.SUCCEEDED, 2, None)
    assert stack.states(job_id) == ["queued", "running", "queued", "running", "succeeded"]
    assert [version.version for version in stack.versions("killed")] == [1]


def test_a_job_that_kills_every_worker_fails_with_worker_lost(breakable: Stack) -> None:
    job_id = breakable.submit("poison", passes=1000, pass_s=0.1)
    for attempt in (1, 2):
        breakable.start()
        wait_until(
            lambda attempt=attempt: (
                breakable.job(job_id).attempt == attempt and breakable.job(job_id).state is State.RUNNING
            ),
            f"attempt {attempt}",
            DEADLINE_S,
        )
        breakable.worker_of(job_id).kill()
    breakable.start()
    job = breakable.await_state(job_id, State.FAILED)
    assert job.error is not None
    assert job.error["code"] == "worker_lost"


def test_a_worker_asked_to_end_gives_its_job_back(breakable: Stack, tmp_path: Path) -> None:
    worker = breakable.start()
    gate = tmp_path / "gate"
    job_id = breakable.submit("stopped", passes=15, pass_s=0, hold_until=str(gate))
    breakable.await_pass(job_id, 1)
    for _ in range(20):  # as a supervisor does that dies: once for each of its threads
        worker.terminate()
    assert worker.wait() == 0  # by itself: the alarm of a worker that hangs gives another code
    job = breakable.job(job_id)
    assert (job.state, job.attempt, job.lease_owner) == (State.QUEUED, 1, None)
    assert job.sent_at is not None
    gate.touch()
    breakable.start()
    assert breakable.await_state(job_id, State.SUCCEEDED).attempt == 2
    assert breakable.states(job_id) == ["queued", "running", "queued", "running", "succeeded"]
    assert len(breakable.versions("stopped")) == 1


def test_a_worker_that_cannot_stop_its_job_gives_it_back_all_the_same(
    breakable: Stack, tmp_path: Path
) -> None:
    """As while kernels compile: nothing is yielded for long."""
    worker = breakable.start()
    job_id = breakable.submit("deaf", passes=2, pass_s=0, deaf_until=str(tmp_path / "never"))
    # Not the pass itself: the worker may still look whether to stop after it has written that down.
    wait_until(lambda: "deaf from now on" in worker.log(), "the job to be deaf", DEADLINE_S)
    asked_at = time.monotonic()
    worker.terminate()
    breakable.await_state(job_id, State.QUEUED)
    # Not at once: the last state of a job that does stop is worth a wait.
    assert time.monotonic() - asked_at > 2
    assert breakable.job(job_id).attempt == 1


def test_an_idle_worker_ends_by_itself(breakable: Stack) -> None:
    worker = breakable.start()
    wait_until(lambda: "ready" in worker.log(), "the worker to be ready", DEADLINE_S)
    worker.terminate()
    assert worker.wait() == 0


def test_a_cancel_takes_effect_within_a_second_even_if_the_work_does_not_stop() -> None:
    """The tests below show that it does; how soon follows from these, whatever the machine."""
    assert lease.POLL_S + lease.CANCEL_TIMEOUT_S + lease.POLL_S < 1


def test_a_running_job_is_cancelled_between_two_passes(breakable: Stack) -> None:
    breakable.start()
    job_id = breakable.submit("cancelled", passes=1000, pass_s=0.1)
    breakable.await_pass(job_id, 1)
    with breakable.db.write() as conn:
        assert control.cancel(conn, job_id).state is State.CANCELLING
    wait_until(lambda: breakable.job(job_id).ended, "the end of the job", DEADLINE_S)
    assert breakable.job(job_id).state is State.CANCELLED
    assert breakable.states(job_id) == ["queued", "running", "cancelling", "cancelled"]


def test_a_job_whose_work_cannot_stop_is_cancelled_all_the_same(breakable: Stack, tmp_path: Path) -> None:
    worker = breakable.start()
    gate = tmp_path / "gate"
    job_id = breakable.submit("hung", passes=1000, pass_s=0, deaf_until=str(gate))
    wait_until(lambda: "deaf from now on" in worker.log(), "the deaf time", DEADLINE_S)
    with breakable.db.write() as conn:
        control.cancel(conn, job_id)
    wait_until(lambda: breakable.job(job_id).ended, "the end of the job", DEADLINE_S)
    # The worker is free when its work comes to a point where it can stop.
    gate.touch()
    breakable.await_state(breakable.submit("next", passes=1, pass_s=0), State.SUCCEEDED)
    assert breakable.states(job_id) == ["queued", "running", "cancelling", "cancelled"]
    assert breakable.job(job_id).result is None


def test_a_message_delivered_five_times_runs_the_job_once(breakable: Stack) -> None:
    job_id = breakable.create("five", passes=5, pass_s=0.1)
    for _ in range(5):
        breakable.send(job_id)
    for _ in range(2):
        breakable.start()
    assert breakable.await_state(job_id, State.SUCCEEDED).attempt == 1
    # The queue is served in order, so when a later job has ended the duplicates have been looked at.
    breakable.await_state(breakable.submit("after", passes=1, pass_s=0), State.SUCCEEDED)
    assert breakable.states(job_id) == ["queued", "running", "succeeded"]
    assert len(breakable.versions("five")) == 1


def test_a_busy_worker_leaves_the_next_message_to_others(breakable: Stack, own_redis: RedisServer) -> None:
    breakable.start()
    first = breakable.submit("first", passes=1000, pass_s=0.1)
    breakable.await_pass(first, 1)
    second = breakable.submit("second", passes=1, pass_s=0)
    with messages.connect(own_redis.url) as client:
        # Not equality: on a loaded machine the first may wait there once more, sent again between fetch and claim.
        assert second in messages.waiting(client)
    breakable.start()
    breakable.await_state(second, State.SUCCEEDED)
    assert breakable.job(first).state is State.RUNNING


def test_a_job_whose_sender_died_before_sending_is_swept_up(breakable: Stack) -> None:
    job_id = breakable.create("unsent", passes=2, pass_s=0.01)
    breakable.start()
    assert breakable.await_state(job_id, State.SUCCEEDED).attempt == 1


def test_a_message_that_redis_forgot_is_sent_again(breakable: Stack, own_redis: RedisServer) -> None:
    job_id = breakable.submit("forgotten", passes=2, pass_s=0.01)
    own_redis.flush()
    breakable.start()
    assert breakable.await_state(job_id, State.SUCCEEDED).attempt == 1


def test_training_goes_on_without_redis_and_every_event_is_kept(
    breakable: Stack, own_redis: RedisServer
) -> None:
    breakable.start()
    job_id = breakable.submit("cut-off", passes=40, pass_s=0.1)
    breakable.await_pass(job_id, 3)
    own_redis.kill()
    breakable.await_pass(job_id, 20)
    own_redis.start()
    assert breakable.await_state(job_id, State.SUCCEEDED).attempt == 1
    passes = [event.data["pass"] for event in breakable.events(job_id) if event.type == "pass"]
    assert passes == list(range(1, 41))
    wait_until(
        lambda: b"succeeded" in breakable.stream(job_id)[-1].get(b"event", b""), "the last event in Redis"
    )
    told = [json.loads(entry[b"event"])["seq"] for entry in breakable.stream(job_id) if b"event" in entry]
    assert told == list(range(told[0], len(breakable.events(job_id)) + 1))


def test_a_job_finishes_with_redis_away_and_the_next_one_starts_when_it_is_back(
    breakable: Stack, own_redis: RedisServer
) -> None:
    breakable.start()
    job_id = breakable.submit("away", passes=10, pass_s=0.1)
    breakable.await_pass(job_id, 2)
    own_redis.kill()
    breakable.await_state(job_id, State.SUCCEEDED)
    waiting = breakable.create("back", passes=1, pass_s=0)
    own_redis.start()
    breakable.await_state(waiting, State.SUCCEEDED)
