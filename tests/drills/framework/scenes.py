"""The services that drills break, by name."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.drills.framework.scene import PostgresScene, Scene, SqliteScene

SCENES: dict[str, type[Scene]] = {"sqlite": SqliteScene, "postgresql": PostgresScene}


@contextlib.contextmanager
def running(name: str) -> Iterator[Scene]:
    """Start a service for the duration of the block."""
    # Short, for a socket address holds 107 bytes.
    with tempfile.TemporaryDirectory(prefix="drill-") as folder:
        scene = SCENES[name](Path(folder))
        try:
            scene.start()
            yield scene
        finally:
            scene.stop()
