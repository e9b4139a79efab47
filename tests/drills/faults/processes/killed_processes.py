"""kill -9 of the processes of a service."""

import signal

from tests.drills.framework.drill import drill
from tests.drills.framework.scene import Scene
from tests.services import wait_until

BOTH = ("postgresql", "sqlite")


@drill(
    fault="kill -9 of a worker",
    where="the worker that trains, at a random moment of the training",
    promise="Another worker continues from the last checkpoint, after the lease at the latest.",
    rival="procrastinate 1518",
    scenes=BOTH,
)
def killed_worker(scene: Scene) -> None:
    before = scene.job()
    scene.kill(scene.holder(), signal.SIGKILL)
    scene.mark_over()
    wait_until(lambda: scene.job().ended or scene.job().attempt == before.attempt + 1, "another worker")


@drill(
    fault="kill -9 of an API process",
    where="an API process, at a random moment",
    promise="The port stays open. Connections of the process are reset, new ones wait for the next process.",
    scenes=BOTH,
)
def killed_api(scene: Scene) -> None:
    pid = scene.pid("api-1")
    scene.kill(pid, signal.SIGKILL)
    scene.mark_over()
    wait_until(lambda: scene.pid("api-1") != pid, "another API process")
    assert not scene.tagging.was_refused, "nobody held the port"


@drill(
    fault="kill -9 of the supervisor",
    where="`tagsmith up`, which is then started again",
    promise="All its processes end with it. The next start finds the data, and jobs under way continue.",
    scenes=BOTH,
)
def killed_supervisor(scene: Scene) -> None:
    scene.kill_and_start()
