"""Names of classes: one class per name in the whole project, so that a name has one meaning."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("app", "core", "worker", "tagsmith")


def _classes() -> dict[str, set[str]]:
    """Return the files of each public class name. Links within `tagsmith/` lead to the same files."""
    found: dict[str, set[str]] = defaultdict(set)
    paths = {path.resolve() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(path.relative_to(ROOT).as_posix())
    return found


def test_no_two_classes_have_the_same_name() -> None:
    shared = {name: sorted(files) for name, files in _classes().items() if len(files) > 1}
    assert shared == {}


def test_classes_are_found() -> None:
    assert {"Tagger", "Settings", "SparseModel"} <= _classes().keys()
