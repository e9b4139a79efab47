"""Clocks jump, as they do when a machine wakes up or an operator sets them."""

from tests.drills.framework.drill import drill
from tests.drills.framework.inside import COMPILER
from tests.drills.framework.scene import Scene

HOUR_S = 3600


@drill(
    fault="a clock jumps by an hour, forward or back",
    where="a preloaded library shifts the clock: of the worker that trains, with PostgreSQL; of all processes of the "
    "machine, with SQLite",
    promise="Leases use the clock of the database and survive. No job is taken from a live worker for good.",
    scenes=("postgresql", "sqlite"),
    program=COMPILER,
)
def clock_jump(scene: Scene) -> None:
    pids = scene.machine_of(scene.holder())
    scene.inside.shift_clocks(pids, scene.rng.choice((-1, 1)) * HOUR_S)
    scene.mark_over()
    scene.moment()
