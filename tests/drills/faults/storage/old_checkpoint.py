"""A paused job is resumed by newer code."""

from tagsmith.core.jobs import events
from tests.drills.framework.drill import drill
from tests.drills.framework.scene import Scene
from tests.services import wait_until


@drill(
    fault="upgrade with a paused job",
    where="a database of commit 7c860b3, kept with the drills, is opened, migrated and served by this code, and its "
    "paused job is resumed",
    promise="The job continues from the old checkpoint, or says why it starts again. Versions and aliases stay.",
    scenes=("upgraded",),
)
def old_checkpoint(scene: Scene) -> None:
    def said() -> bool:
        with scene.database.read() as conn:
            messages = [event.message for event in events.after(conn, scene.job_id, 0, 10_000)]
        return any(
            each.startswith(("resumed after pass", "the checkpoint cannot be used")) for each in messages
        )

    wait_until(said, "a word about the checkpoint")
