"""A checkpoint that is half there."""

from tests.drills.framework.drill import drill
from tests.drills.framework.scene import Scene
from tests.services import wait_until


@drill(
    fault="a torn checkpoint",
    where="the worker is killed while it writes a checkpoint to the database, or its file loses its second half "
    "before it is stored, and then the worker is killed",
    promise="The first is rolled back. The second is recognised, and training starts again.",
    scenes=("postgresql", "sqlite"),
)
def torn_checkpoint(scene: Scene) -> None:
    torn = scene.rng.choice(("torn-row", "torn-file"))
    scene.inside.arm(torn)
    wait_until(lambda: not scene.inside.is_armed(torn) or scene.job().ended, "a checkpoint")
