"""The services that drills break, by name."""

import contextlib
import lzma
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.drills.framework import namespaces
from tests.drills.framework.clients import MODEL, Clients
from tests.drills.framework.drill import Drill
from tests.drills.framework.hosts import HostsScene
from tests.drills.framework.scene import WORKERS, PostgresScene, Scene, SqliteScene
from tests.drills.history import Submission

#: Enough for the data of all repetitions.
SMALL_DISK_BYTES = 256 << 20
#: A database that commit 7c860b3 wrote (schema 0010): a served version, and a job paused after pass 56 of 1,000.
OLD_DATABASE = Path(__file__).parents[1] / "data" / "paused_at_7c860b3.db.xz"
OLD_SEED = 2


class SmallDiskScene(SqliteScene):
    """The data directory is on a disk of its own, which a drill can fill."""

    workers = WORKERS[:1]

    def start(self) -> None:
        namespaces.mount_small_disk(self.data_dir, SMALL_DISK_BYTES)
        super().start()

    def stop(self) -> None:
        super().stop()
        namespaces.unmount(self.data_dir)


class UpgradedScene(SqliteScene):
    """Begins with the data of an older Tagsmith, each time anew. The paused job is the one under way."""

    fresh = True
    workers = WORKERS[:1]

    def start(self) -> None:
        shutil.rmtree(self.data_dir, ignore_errors=True)
        self.data_dir.mkdir()
        (self.data_dir / "tagsmith.db").write_bytes(lzma.decompress(OLD_DATABASE.read_bytes()))
        super().start()
        self.has_champion = True

    def begin(self, clients: Clients) -> str:
        (paused,) = clients.client.jobs(state="paused")
        clients.history.jobs.append(Submission(MODEL, OLD_SEED, paused.id))
        clients.look()
        clients.client.resume(paused.id)
        return paused.id


SCENES: dict[str, type[Scene]] = {
    "postgresql": PostgresScene,
    "sqlite": SqliteScene,
    "hosts": HostsScene,
    "small_disk": SmallDiskScene,
    "upgraded": UpgradedScene,
}
#: These need namespaces, and so root.
PRIVILEGED = ("hosts", "small_disk")


def missing(drill: Drill) -> str:
    """Return what this machine lacks for a drill, or ""."""
    if drill.program and shutil.which(drill.program) is None:
        return f"it needs {drill.program}"
    if drill.scene in PRIVILEGED and not namespaces.are_permitted():
        return "it needs root, ip and unshare"
    return ""


@contextlib.contextmanager
def running(name: str, *, quick: bool = False) -> Iterator[Scene]:
    """Start a service for the duration of the block. One that every repetition needs anew is not started."""
    # Short, for a socket address holds 107 bytes.
    with tempfile.TemporaryDirectory(prefix="drill-") as folder:
        scene = SCENES[name](Path(folder), quick=quick)
        if not scene.fresh:
            scene.start()
        try:
            yield scene
        finally:
            if not scene.fresh:
                scene.stop()
