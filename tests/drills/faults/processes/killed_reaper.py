"""The processes that look for lost jobs are lost themselves."""

import signal

from tests.drills.framework.drill import drill
from tests.drills.framework.scene import Scene


@drill(
    fault="the reaper killed",
    where="the worker that trains and, when its lease is about to expire, the only other worker",
    promise="Every worker is a reaper. The first one that starts takes the job over.",
    rival="procrastinate 1408",
)
def killed_reaper(scene: Scene) -> None:
    holder = scene.holder()
    (other,) = {scene.pid("worker-1"), scene.pid("worker-2")} - {holder}
    scene.kill(holder, signal.SIGKILL)
    scene.mark_over()
    # Its lease was renewed a heartbeat ago at most.
    scene.moment(scene.times["lease_seconds"] - scene.times["heartbeat_seconds"])
    scene.kill(other, signal.SIGKILL)
