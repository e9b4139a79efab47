"""The disk of the data directory is full."""

import errno
import time
from pathlib import Path

from tests.drills.framework.drill import drill
from tests.drills.framework.scene import Scene

BLOCK_BYTES = 64 << 10


@drill(
    fault="the disk full",
    where="the data directory (SQLite, model cache, logs, Redis) is on a small disk of its own, which is kept full for "
    "3 to 6 s",
    promise="Requests that need room get a sentence. A finished training waits for room. Open models tag.",
    scenes=("small_disk",),
)
def full_disk(scene: Scene) -> None:
    filler = scene.data_dir / "filler"
    end = time.monotonic() + scene.duration_s(3.0, 6.0)
    try:
        while time.monotonic() < end:
            _fill(filler)
            time.sleep(0.05)
    finally:
        filler.unlink()


def _fill(path: Path) -> None:
    """Take all the room that there is, also what others have freed."""
    with path.open("ab", buffering=0) as file:
        size = BLOCK_BYTES
        while size:
            try:
                file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 16
