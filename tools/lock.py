"""The locks: which version of each package is installed, with which hashes, and for whom."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What the service runs with, what tracing adds, and what work on the project adds.
RUNTIME, TRACING, DEVELOPMENT = "requirements.txt", "requirements-otel.txt", "requirements-dev.txt"

_PIN = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9._-]*)==(?P<version>[^\s;\\]+)(?: ; (?P<marker>[^\\\n]+?))? ?\\?\n"
    r"(?P<hashes>(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)*)"
    r"(?P<via>(?:    #.*\n?)*)",
    re.MULTILINE,
)
_HASH = re.compile(r"sha256:([0-9a-f]{64})")
#: A package, or a file of requirements of the project itself.
_VIA = re.compile(r"#\s+(?:via )?(-r|[a-z0-9][a-z0-9._-]*)(?: \S+)?$", re.MULTILINE)
#: The name of the project among the packages that need others.
PROJECT = "tagsmith"


@dataclass(frozen=True, slots=True)
class Pin:
    """One package of a lock."""

    name: str
    version: str
    #: The platforms it is for; empty means all.
    marker: str
    hashes: tuple[str, ...]
    #: The packages that need it; `PROJECT` is the project itself.
    needed_by: tuple[str, ...]

    @property
    def purl(self) -> str:
        """The package URL, which names a package without naming a server."""
        return f"pkg:pypi/{self.name}@{self.version}"


def read(path: Path) -> list[Pin]:
    """Read a lock as `uv pip compile` writes it."""
    return [
        Pin(
            found["name"],
            found["version"],
            found["marker"] or "",
            tuple(_HASH.findall(found["hashes"])),
            tuple(PROJECT if name == "-r" else name for name in _VIA.findall(found["via"]) if name != "via"),
        )
        for found in _PIN.finditer(path.read_text(encoding="utf-8"))
    ]
