"""The version of the code: the package version, and the git revision if it is known."""

import functools
import importlib.metadata
import subprocess
from pathlib import Path

#: Builds without a .git directory (images, wheels) can store the revision here.
REVISION_FILE = Path(__file__).resolve().parents[1] / "REVISION"
GIT_TIMEOUT_S = 5.0


def package_version() -> str:
    """Return the version of the installed package; `0+unknown` if it is not installed."""
    try:
        return importlib.metadata.version("tagsmith")
    except importlib.metadata.PackageNotFoundError:
        return "0+unknown"


@functools.cache
def git_revision() -> str | None:
    """Return the short revision of the source, with `-dirty` if tracked files were changed."""
    if REVISION_FILE.is_file():
        return REVISION_FILE.read_text(encoding="ascii").strip() or None
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


@functools.cache
def code_version() -> str:
    """Return the code version recorded with every trained model: `0.1.0` or `0.1.0+1a2b3c4d5e6f`."""
    revision = git_revision()
    return package_version() + (f"+{revision}" if revision else "")
