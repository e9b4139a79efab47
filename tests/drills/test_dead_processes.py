"""Processes end in order, and the service goes on. What happens when they are killed is in `faults`."""

import os
import signal
from collections.abc import Callable

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tests.drills import actions
from tests.services import wait_until

StartStack = Callable[..., BackgroundStack]


def test_a_worker_told_to_stop_gives_its_job_back_at_once(stack: BackgroundStack) -> None:
    # Leases are 30 s here: only giving the job back explains a quick second attempt.
    with Client(stack.url, retries=0) as client:
        job_id = actions.start_long_job(client)
        os.kill(actions.child_pid(stack, "worker-1"), signal.SIGTERM)
        wait_until(lambda: client.job(job_id).attempt == 2, "the second attempt", 60)
        assert client.wait(job_id).state == "succeeded"
        # It left a checkpoint, though none was due yet, and each pass is reported once.
        events = client.events(job_id)
        assert any(event.message.startswith("resumed after pass") for event in events)
        passes = [event.data["pass"] for event in events if event.type == "pass"]
        assert passes == list(range(1, actions.LONG_PASSES + 1))


def test_the_supervisor_brings_its_own_redis_back(stack: BackgroundStack) -> None:
    with Client(stack.url, retries=0) as client:
        first = actions.child_pid(stack, "redis")
        os.kill(first, signal.SIGKILL)
        assert actions.train(client).attempt == 1
        assert actions.child_pid(stack, "redis") != first


def test_ctrl_c_stops_everything_in_order_and_a_job_under_way_goes_on_at_the_next_start(
    start_stack: StartStack,
) -> None:
    stack = start_stack()
    with Client(stack.url, retries=0) as client:
        job_id = actions.start_long_job(client)
    family = actions.family(stack)
    assert stack.stop() == 0
    assert actions.left(family) == []
    assert actions.pid_files(stack.settings.data_dir) == []
    log = stack.log_path.read_text()
    assert log.rstrip().endswith("stopped")
    assert "killing it" not in log

    again = start_stack()
    with Client(again.url, retries=0) as client:
        assert client.wait(job_id).state == "succeeded"
        assert [version.version for version in client.versions(actions.MODEL)] == [1]
