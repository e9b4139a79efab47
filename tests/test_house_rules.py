"""Rules of the house that no linter has: few functions with many parameters, no folder with many modules."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("core", "app", "worker", "tagsmith")
#: Parameters beyond which arrays should be grouped by meaning, and how many functions may have more.
MOST_PARAMETERS, MOST_FUNCTIONS = 8, 12
#: Modules beyond which a folder should have a subfolder.
MOST_MODULES = 15


def _sources() -> list[Path]:
    """Every module once: the packages of `tagsmith/` that are links count where they lie."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in paths if not any(parent.is_symlink() for parent in path.parents)]


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many a caller may give."""
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def _long_functions() -> Iterator[str]:
    for path in _sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and _parameters(node) > MOST_PARAMETERS
            ):
                yield f"{path.relative_to(ROOT)}: {node.name} has {_parameters(node)} parameters"


def test_few_functions_have_more_than_8_parameters() -> None:
    found = list(_long_functions())
    assert len(found) <= MOST_FUNCTIONS, "\n".join(found)


def test_no_folder_has_more_than_15_modules() -> None:
    modules = [path for path in _sources() if path.name != "__init__.py"]
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in modules)
    assert {folder for folder, count in counts.items() if count > MOST_MODULES} == set()
