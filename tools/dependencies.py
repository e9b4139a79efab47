"""Checks of the dependencies, part of `make check`. Nothing is asked of the network.

- Every package of a lock is pinned with hashes, once, and at the same version in every lock.
- Every package that is installed is one of a lock, at its version.
- No pin is older than the version that fixed a known vulnerability. `advisories.json` lists these versions, and the
  day on which the list was last compared with public advisories.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from importlib import metadata
from pathlib import Path

from packaging.version import Version

from tools import lock
from tools.lock import ROOT, Pin

ADVISORIES = Path(__file__).parent / "advisories.json"
LOCKS = (lock.RUNTIME, lock.TRACING, lock.DEVELOPMENT)
#: Installed with Python, or this project itself.
NOT_LOCKED = frozenset({"pip", "tagsmith"})
#: A list older than this says little about the packages of today.
MAX_AGE_DAYS = 120


def faults(
    locks: Mapping[str, list[Pin]], installed: Mapping[str, str], fixed: Mapping[str, str]
) -> Iterator[str]:
    """Yield what is wrong, one sentence each."""
    versions: dict[str, set[str]] = {}
    for name, pins in locks.items():
        if not pins:
            yield f"{name} has no pins."
        seen: set[tuple[str, str]] = set()
        for pin in pins:
            versions.setdefault(pin.name, set()).add(pin.version)
            if not pin.hashes:
                yield f"{pin.name} has no hashes in {name}. Run `make lock`."
            if (pin.name, pin.marker) in seen:
                yield f"{pin.name} is pinned twice in {name}. Run `make lock`."
            seen.add((pin.name, pin.marker))
            if pin.name in fixed and Version(pin.version) < Version(fixed[pin.name]):
                yield f"{pin.name} {pin.version} in {name} is vulnerable. Use {fixed[pin.name]} or newer."
    yield from (
        f"{name} is pinned at {' and '.join(sorted(each))}. Run `make lock`."
        for name, each in sorted(versions.items())
        if len(each) > 1 and not _by_platform(name, locks)
    )
    for name, version in sorted(installed.items()):
        if name not in versions:
            yield f"{name} {version} is installed but in no lock. Remove it, or add it to a lock."
        elif version not in versions[name]:
            yield f"{name} {version} is installed, but the lock has {', '.join(versions[name])}. Run `make setup`."


def _by_platform(name: str, locks: Mapping[str, list[Pin]]) -> bool:
    """Whether the versions of a package are for different platforms."""
    return all(pin.marker for pins in locks.values() for pin in pins if pin.name == name)


def age_days(checked_on: str, today: date) -> int:
    return (today - date.fromisoformat(checked_on)).days


def installed_packages() -> dict[str, str]:
    """The packages of this environment by their normal name."""
    found = {
        re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower(): each.version
        for each in metadata.distributions()
    }
    return {name: version for name, version in found.items() if name not in NOT_LOCKED}


def main() -> int:
    known = json.loads(ADVISORIES.read_text(encoding="utf-8"))
    locks = {name: lock.read(ROOT / name) for name in LOCKS}
    fixed = {name: each["fixed_in"] for name, each in known["packages"].items()}
    found = list(faults(locks, installed_packages(), fixed))
    for fault in found:
        print(fault)
    age = age_days(known["checked_on"], datetime.now(UTC).date())
    if age > MAX_AGE_DAYS:
        print(
            f"warning: {ADVISORIES.name} is {age} days old. Compare it with public advisories and update it."
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
