"""What `import tagsmith` gives, and what it does not import."""

import subprocess
import sys

import pytest

import tagsmith

#: What a client must not pull in.
HEAVY = {"numba", "numpy", "celery", "sqlalchemy", "fastapi", "starlette", "redis", "uvicorn"}


def imported(code: str) -> set[str]:
    """The packages that some code imports, in a process of its own."""
    script = f"{code}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import tagsmith",
        "from tagsmith import Client, AsyncClient\nClient('http://127.0.0.1:1').close()",
        "from tagsmith import wire",
    ],
)
def test_a_client_pulls_in_nothing_of_the_server(code: str) -> None:
    assert not imported(code) & HEAVY


def test_what_runs_in_process_pulls_in_no_framework() -> None:
    found = imported("from tagsmith import SequenceTagger, Tagger")
    assert "numba" in found
    assert not found & (HEAVY - {"numba", "numpy"})
    assert "httpx" not in found


def test_the_names_are_there_and_no_others() -> None:
    assert {"AsyncClient", "Client", "SequenceTagger", "Tagger"} <= set(dir(tagsmith))
    for name in tagsmith.__all__:
        assert getattr(tagsmith, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        tagsmith.Nobody  # noqa: B018
