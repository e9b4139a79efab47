"""The wheel: everything under one name, beside a user's own `core` and `app`, without what only the server needs."""

import email
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.tagsmith.text_model import model_file

ROOT = Path(__file__).parents[2]
#: What the wheel is built from.
SOURCES = (
    "pyproject.toml",
    "setup.py",
    "README.md",
    "LICENSE",
    "app",
    "core",
    "migrations",
    "tagsmith",
    "worker",
)

USE = """
import sys
for name in {server!r}:
    sys.modules[name] = None  # as if it were not installed
import tagsmith
from tagsmith import AsyncClient, Client, SequenceTagger, Tagger
assert tagsmith.__file__.startswith({site!r}), tagsmith.__file__
Client("http://127.0.0.1:1").close()
AsyncClient("http://127.0.0.1:1")
print(Tagger.open({model!r}).tag([["Ada", "saw", "London"]]))
X, y = [[{{"w": "a"}}, {{"w": "b"}}]] * 3, [["x", "y"]] * 3
print(SequenceTagger("averaged-perceptron", passes=2).fit(X, y).predict(X[:1]))
from tagsmith.cli.main import main
assert main(["--version"]) == 0
assert main(["tag", "--local", {model!r}, "words.txt", "--input", "text", "-f", "tags", "--no-probabilities"]) == 0
assert main(["tag", "--local", {model!r}, "words.txt", "--input", "columns"]) == 0
assert main(["models", "ls", "--url", "http://127.0.0.1:1"]) == 1
assert main(["up"]) == main(["keys", "create", "--scope", "admin"]) == 2
import app, core
print(app.OWNER, core.OWNER)
"""


def _not_sources(folder: str, names: list[str]) -> set[str]:
    """Leave out what is not in the repository: caches, and the links that `make` creates."""
    links = {name for name in names if (Path(folder) / name).is_symlink()}
    return links | {name for name in names if name == "__pycache__" or name.endswith(".egg-info")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy, so that nothing is left beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in (*SOURCES, *(path.name for path in ROOT.glob("requirements*.in"))):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_not_sources)
        else:
            shutil.copy(source, folder / name)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*command, "--wheel-dir", "out", "."], cwd=folder, check=True)
    (built,) = (folder / "out").glob("*.whl")
    return built


def test_the_wheel_has_one_package_and_all_its_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = [Path(name) for name in opened.namelist()]
        (metadata,) = (name for name in names if name.name == "METADATA")
        about = email.message_from_bytes(opened.read(str(metadata)))
    assert {name.parts[0] for name in names} == {"tagsmith", metadata.parts[0]}
    kept = {str(Path(*name.parts[1:])) for name in names if name.parts[0] == "tagsmith"}
    for package in ("app", "core", "migrations", "worker"):
        wanted = {path.relative_to(ROOT) for path in (ROOT / package).rglob("*.py")}
        assert {str(path) for path in wanted} <= kept
    assert {"py.typed", "migrations/script.py.mako", "app/page/static/index.html"} <= kept
    pages = [path for path in (ROOT / "app/page/static").rglob("*") if path.is_file()]
    assert {str(path.relative_to(ROOT)) for path in pages} <= kept
    needed = {
        re.split(r"[<>=;\[ ]", line)[0]
        for line in about.get_all("Requires-Dist", ())
        if "extra ==" not in line
    }
    assert needed == {
        "anyio",
        "httpx",
        "httpx-sse",
        "numba",
        "numpy",
        "pydantic",
        "orjson",
        "pyyaml",
        "rich",
        "typer",
        "zstandard",
    }
    assert {"server", "otel"} <= set(about.get_all("Provides-Extra", ()))


@pytest.mark.timeout(600)  # the kernels of another place are compiled anew
def test_it_works_beside_packages_of_the_same_names_and_without_the_server(
    wheel: Path, tmp_path: Path
) -> None:
    site, project = tmp_path / "site", tmp_path / "project"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*command, "--target", str(site), str(wheel)], check=True)
    project.mkdir()
    (project / "words.txt").write_text("Ada\nsaw\nLondon\n")
    for name in ("app", "core"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text('OWNER = "user"\n')
    listed = (ROOT / "requirements-server.in").read_text(encoding="utf-8").splitlines()
    server = [re.split(r"[\[>=]", line)[0].replace("-", "_") for line in listed if line and line[0] != "#"]
    code = USE.format(server=server, site=str(site), model=str(model_file(tmp_path / "model")))
    environment = {
        **os.environ,
        "PYTHONPATH": str(site),
        "NUMBA_CACHE_DIR": str(tmp_path / "kernels"),
        "NUMBA_OPT": "0",  # compiles in half the time
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tagged, predicted, version, *words, owners = done.stdout.splitlines()
    assert (tagged, predicted, owners) == ("[['B-PER', 'O', 'B-LOC']]", "[['x', 'y']]", "user user")
    assert version.startswith("tagsmith 0.1.0")
    assert words == ["B-PER", "O", "B-LOC", "Ada B-PER", "saw O", "London B-LOC"]
    assert done.stderr.count("pip install 'tagsmith[server]'") == 2
