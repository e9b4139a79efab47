"""Processes are killed, and the service goes on."""

import os
import signal
from collections.abc import Callable

import httpx

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tests.drills import actions
from tests.services import wait_until

StartStack = Callable[..., BackgroundStack]
#: A lost worker is noticed in two seconds instead of thirty.
SHORT_LEASES = {"lease_seconds": 2.0, "heartbeat_seconds": 0.5, "reaper_seconds": 0.5}
#: Workers and API processes end by force 15 s after the signal at the latest; as long again for a machine that is busy.
ORPHANS_END_S = 30


def test_a_worker_killed_in_mid_job_costs_time_and_nothing_else(start_stack: StartStack) -> None:
    stack = start_stack(**SHORT_LEASES)
    with Client(stack.url, retries=0) as client:
        job_id = actions.start_long_job(client)
        os.kill(actions.child_pid(stack, "worker-1"), signal.SIGKILL)
        job = client.wait(job_id)
        assert (job.state, job.attempt) == ("succeeded", 2)
        assert [version.version for version in client.versions(actions.MODEL)] == [1]
        seqs = [event.seq for event in client.events(job_id)]
        assert seqs == list(range(1, len(seqs) + 1))
        actions.tag(client)


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


def test_while_a_killed_api_process_comes_back_clients_wait_and_are_not_refused(
    start_stack: StartStack,
) -> None:
    stack = start_stack()
    with Client(stack.url, retries=0) as client:
        actions.train(client)
    os.kill(actions.child_pid(stack, "api-1"), signal.SIGKILL)
    # A connection that the dead process had accepted is reset; a new one waits for the next process.
    wait_until(lambda: _answers(stack.url), "an answer of the new API process", 60)
    with Client(stack.url) as client:
        actions.tag(client)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/livez", timeout=60).status_code == 200
    except httpx.ConnectError as error:
        raise AssertionError("refused: nobody holds the port") from error
    except httpx.TransportError:
        return False


def test_a_killed_supervisor_leaves_nothing_behind_and_the_next_start_finds_its_data(
    start_stack: StartStack,
) -> None:
    stack = start_stack(workers=2)
    with Client(stack.url, retries=0) as client:
        actions.train(client)
    family = actions.family(stack)
    assert len(family) == 5  # supervisor, redis, two workers, API
    stack.kill()
    wait_until(lambda: not actions.left(family), lambda: f"{actions.left(family)} to end", ORPHANS_END_S)

    again = start_stack(workers=2)
    with Client(again.url, retries=0) as client:
        assert client.model(actions.MODEL).aliases == {"champion": 1}
        actions.tag(client)


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
