"""Resources of this machine or container."""

import os
from pathlib import Path

#: Files with the memory limit of a container: cgroup v2, then v1.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_bytes(limits: tuple[Path, ...] = _LIMITS) -> int:
    """Return the available memory: that of the machine, or the limit of the container if it is lower."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in limits:
        try:
            # Without a limit the file has "max" or a huge number.
            return min(physical, int(path.read_text()))
        except (OSError, ValueError):
            continue
    return physical
