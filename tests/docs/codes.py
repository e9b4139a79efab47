"""Finds every error code of the sources, with the HTTP statuses of its responses.

The sources are parsed, not run, so codes that no test reaches are found too. A code that is computed in an unsupported
way fails the tests, so no code is missed silently.
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tagsmith.app.http import problems

ROOT = Path(__file__).parents[2]
SOURCES = ("app", "core", "worker")
#: Errors raised only here end a command, not a request.
COMMANDS = ROOT / "app" / "cli"
WORKER = ROOT / "worker"

#: Codes with a part that is computed, by their pattern.
COMPUTED = {
    "unknown_{parameter}": ("unknown_template", "unknown_label", "unknown_before"),
    "{table.name}_not_found": ("corpus_not_found", "lexicon_not_found"),
    "{table.name}_in_use": ("corpus_in_use", "lexicon_in_use"),
}
#: Codes that keep their name when an error is raised again as another one: a body names something that does not exist.
RAISED_AGAIN = {
    ("NotFound", "Invalid"): (
        "alias_not_found", "corpus_not_found", "lexicon_not_found", "model_not_found", "version_not_found",
    ),
}  # fmt: skip

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Code:
    """Where one code comes from."""

    #: Statuses of the problem responses that can have it.
    statuses: set[int] = field(default_factory=set)
    files: set[Path] = field(default_factory=set)

    @property
    def of_commands(self) -> bool:
        return all(path.is_relative_to(COMMANDS) for path in self.files)

    @property
    def of_jobs(self) -> bool:
        return not self.statuses or all(path.is_relative_to(WORKER) for path in self.files)


@functools.cache
def find() -> dict[str, Code]:
    """Return every code with its origin."""
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for folder in SOURCES
        for path in sorted((ROOT / folder).rglob("*.py"))
    }
    classes = Classes(list(trees.values()))
    found: dict[str, Code] = defaultdict(Code)
    for path, tree in trees.items():
        for code, status in Module(tree, classes).codes():
            found[code].files.add(path)
            if status is not None:
                found[code].statuses.add(status)
    for status, code in problems.FRAMEWORK_CODES.items():
        found[code].statuses.add(status)
        found[code].files.add(Path(problems.__file__))
    return dict(found)


class Classes:
    """The error classes of the sources: their bases, default codes and statuses."""

    def __init__(self, trees: Sequence[ast.Module]) -> None:
        self._bases: dict[str, list[str]] = {}
        self._defaults: dict[str, str] = {}
        nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for node in nodes:
            self._bases[node.name] = [name for base in node.bases if (name := _last(base)) != node.name]
            for statement in node.body:
                target = getattr(statement, "target", None) or next(
                    iter(getattr(statement, "targets", [])), None
                )
                if isinstance(target, ast.Name) and target.id == "default_code":
                    self._defaults[node.name] = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
        self._statuses = {kind.__name__: status for kind, status in problems.STATUS.items()}

    def line(self, name: str) -> list[str]:
        """Return a class and its bases up to the base of all errors; empty for any other class."""
        if name == "TagsmithError":
            return [name]
        rest = next((line for base in self._bases.get(name, ()) if (line := self.line(base))), [])
        return [name, *rest] if rest else []

    def default(self, name: str) -> str:
        return next(self._defaults[each] for each in self.line(name) if each in self._defaults)

    def status(self, name: str) -> int | None:
        """Return the status of a class; None for errors that only jobs have."""
        return next((self._statuses[each] for each in self.line(name) if each in self._statuses), None)


class Module:
    """The codes of one module."""

    def __init__(self, tree: ast.Module, classes: Classes) -> None:
        self._classes = classes
        self._nodes = list(ast.walk(tree))
        self._parents = {child: node for node in self._nodes for child in ast.iter_child_nodes(node)}

    def codes(self) -> Iterator[tuple[str, int | None]]:
        """Yield each code, with the status of its response; None if there is no response."""
        for node in self._nodes:
            if isinstance(node, ast.Call):
                name = _last(node.func)
                if self._classes.line(name):
                    yield from ((code, self._classes.status(name)) for code in self._of_error(node, name))
                elif name == "problem_response" and isinstance(node.args[2], ast.Constant):
                    yield node.args[2].value, ast.literal_eval(node.args[1])
            elif isinstance(node, ast.Dict):
                yield from ((code, None) for code in _of_job(node))

    def _of_error(self, call: ast.Call, name: str) -> Iterator[str]:
        code = next((each.value for each in call.keywords if each.arg == "code"), None)
        if code is None:
            yield self._classes.default(name)
        elif isinstance(code, ast.Attribute) and code.attr == "code":
            caught = self._kind_of(code.value)
            if caught != name:
                yield from RAISED_AGAIN[caught, name]
        else:
            for value in self._values(code):
                yield value or self._classes.default(name)

    def _values(self, node: ast.expr) -> Iterator[str | None]:
        """Yield the values that an expression can have."""
        if isinstance(node, ast.Constant):
            yield node.value
        elif isinstance(node, ast.IfExp):
            yield from self._values(node.body)
            yield from self._values(node.orelse)
        elif isinstance(node, ast.JoinedStr):
            yield from COMPUTED[re.sub("^f['\"]|['\"]$", "", ast.unparse(node))]
        elif isinstance(node, ast.Name):
            yield from self._values_of_name(node)
        else:
            raise AssertionError(f"cannot determine the codes of this expression: {ast.unparse(node)}")

    def _values_of_name(self, node: ast.Name) -> Iterator[str | None]:
        function = self._function(node)
        arguments = [each.arg for each in function.args.args]
        if node.id in arguments:
            index = arguments.index(node.id)
            for call in self._nodes:
                if isinstance(call, ast.Call) and _last(call.func) == function.name:
                    yield from self._values(call.args[index])
            return
        for statement in ast.walk(function):
            if isinstance(statement, ast.Assign):
                yield from self._assigned(statement.targets[0], statement.value, node.id)

    def _assigned(self, target: ast.expr, value: ast.expr, name: str) -> Iterator[str | None]:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for each, given in zip(target.elts, value.elts, strict=True):
                yield from self._assigned(each, given, name)
        elif isinstance(target, ast.Name) and target.id == name:
            yield from self._values(value)

    def _kind_of(self, node: ast.expr) -> str:
        """Return the class of a caught error, or of an error that is a parameter."""
        assert isinstance(node, ast.Name)
        above: ast.AST = node
        while above in self._parents:
            above = self._parents[above]
            if isinstance(above, ast.ExceptHandler) and above.name == node.id:
                assert above.type is not None
                return _last(above.type)
        arguments = {each.arg: each.annotation for each in self._function(node).args.args}
        annotation = arguments[node.id]
        assert annotation is not None
        return _last(annotation)

    def _function(self, node: ast.AST) -> Function:
        while not isinstance(node, Function):
            node = self._parents[node]
        return node


def _of_job(node: ast.Dict) -> Iterator[str]:
    """Yield the code of a dict with a code and a message, which is the error of a job."""
    entries = {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant)
    }
    if {"code", "message"} <= entries.keys() and isinstance(entries["code"], ast.Constant):
        yield entries["code"].value


def _last(node: ast.expr) -> str:
    """Return the last part of a dotted name; empty for any other expression."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
