"""What this machine, or the container on it, has."""

import os
from pathlib import Path

#: Where a container finds its limit: cgroup v2, then v1.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_bytes(limits: tuple[Path, ...] = _LIMITS) -> int:
    """Give the memory that processes here can have: that of the machine, or less if a container limits it."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in limits:
        try:
            # "max", or a number beyond any memory, when there is no limit.
            return min(physical, int(path.read_text()))
        except (OSError, ValueError):
            continue
    return physical
