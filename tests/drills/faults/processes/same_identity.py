"""A worker that comes back under the name of the one that died."""

from tests.drills.framework.drill import drill
from tests.drills.framework.inside import SAME_IDENTITY
from tests.drills.framework.scene import WORKERS, Scene


def _prepare(scene: Scene) -> None:
    scene.inside.arm(SAME_IDENTITY)
    scene.restart(WORKERS)


@drill(
    fault="the same worker identity restarted",
    where="all workers have one host name, process id and token; both are killed while one trains, and start again",
    promise="A lease belongs to one claim, not to a name: it expires, and the job continues.",
    rival="procrastinate 1518, Oban 862",
    prepare=_prepare,
)
def same_identity(scene: Scene) -> None:
    assert ":4711:same/" in (scene.job().lease_owner or ":4711:same/")
    scene.mark_over()
    scene.restart(WORKERS)
