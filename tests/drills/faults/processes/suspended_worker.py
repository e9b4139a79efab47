"""A worker that stands still for longer than its lease, and then goes on as if nothing had happened."""

import signal

from tests.drills.framework.drill import drill
from tests.drills.framework.scene import Scene
from tests.services import wait_until


@drill(
    fault="SIGSTOP of a worker past its lease, then SIGCONT",
    where="the worker that trains, until another one has taken its job over",
    promise="Another worker takes over. The fencing token refuses every late write of the first.",
    rival="Celery 5935",
)
def suspended_worker(scene: Scene) -> None:
    pid, attempt = scene.holder(), scene.job().attempt
    scene.kill(pid, signal.SIGSTOP)
    scene.mark_over()
    try:
        wait_until(
            lambda: scene.job().attempt > attempt or scene.job().ended, "another worker to take the job over"
        )
        # It wakes while the other one works, or when that has just ended.
        scene.moment()
    finally:
        scene.kill(pid, signal.SIGCONT)
