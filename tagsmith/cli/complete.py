"""Names for shell completion and for suggestions after a misspelling.

Importing the engine takes a second, which is too long for a key press. The names of trainers, presets and formats are
therefore read from its sources.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

#: How long a shell waits for names from a server.
TIMEOUT_S = 1.0


def trainers(incomplete: str = "") -> list[str]:
    """The kinds of trainers."""
    files = sorted(_core("learn", "trainers").glob("*/*.py"))
    found = [kind for file in files for kind in re.findall(r'kind: Literal\["([a-z0-9-]+)"\]', _text(file))]
    return _starting(found, incomplete)


def presets(incomplete: str = "") -> list[str]:
    """The names of presets."""
    found = re.search(
        r"^Preset = Literal\[(.*?)\]", _text(_core("features", "presets.py")), re.MULTILINE | re.DOTALL
    )
    return _starting(re.findall(r'"([a-z0-9-]+)"', found.group(1) if found else ""), incomplete)


def formats(incomplete: str = "") -> list[str]:
    """The names of formats."""
    files = sorted(_core("corpus", "formats").glob("*.py"))
    found = [
        name
        for file in files
        for name in re.findall(r'^FORMAT = Format\(\s*name="([a-z]+)"', _text(file), re.MULTILINE)
    ]
    return _starting(found, incomplete)


def models(incomplete: str = "") -> list[str]:
    """The names of the models of the server."""
    return _starting(_of_server(lambda client: [model.name for model in client.models()]), incomplete)


def corpora(incomplete: str = "") -> list[str]:
    """The names of the corpora of the server."""
    return _starting(_of_server(lambda client: [corpus.name for corpus in client.corpora()]), incomplete)


def jobs(incomplete: str = "") -> list[str]:
    """The short ids of the newest jobs of the server."""
    return _starting(_of_server(lambda client: [job.id[-6:] for job in client.jobs()][:50]), incomplete)


def _of_server(names: Callable[..., Sequence[str]]) -> Sequence[str]:
    from tagsmith.cli import connection  # noqa: PLC0415

    try:
        with connection.connected(None, timeout_s=TIMEOUT_S) as client:
            return names(client)
    except Exception:  # noqa: BLE001  # a shell cannot show an error while it completes
        return []


def _core(*parts: str) -> Path:
    spec = find_spec("tagsmith.core")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations)), *parts)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
