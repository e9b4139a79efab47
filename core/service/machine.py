"""Resources of this machine or container."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_CGROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def memory_bytes(cgroups: Path = _CGROUPS, own: Path = _OWN) -> int:
    """Return the available memory: that of the machine, or the lowest limit of the control groups of this process."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _limits(cgroups, own):
        try:
            # Without a limit the file has "max" or a huge number.
            available = min(available, int(path.read_text()))
        except (OSError, ValueError):
            continue
    return available


def _limits(cgroups: Path, own: Path) -> Iterator[Path]:
    """Yield the files that can limit this process: of its control group and of those around it, in both versions."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        folder, name = (
            (cgroups / "memory", "memory.limit_in_bytes") if controllers else (cgroups, "memory.max")
        )
        if controllers in ("", "memory"):
            # In a container, the path can be that outside of it, which does not exist inside.
            inside = PurePosixPath(group).relative_to("/")
            yield from (folder / each / name for each in (inside, *inside.parents))
    yield from (cgroups / "memory.max", cgroups / "memory" / "memory.limit_in_bytes")
