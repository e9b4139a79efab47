"""Runs the examples of a page in order, in one folder, against a running stack.

- `sh` blocks are run by bash and stop at the first error. `python` blocks share one namespace.
- A `text` block directly below an example shows what it prints. `...` stands for any text within a line, and a line of
  only `...` for any lines. Figures may differ a little between machines; see `same`.
- `make ...` and `tagsmith up` are left out: CI runs the targets, and the stack of the tests is there already.
- Blocks in other languages are data or are run by another test. A block under `<!-- run by FILE -->` is run
  by that file.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tagsmith import Client

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"(?:^<!-- run by (?P<other>[\w/.]+) -->\n)?^```(?P<language>sh|python)\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<shown>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
STARTED = re.compile(r"^(?:make|tagsmith up)\b.*\n", re.MULTILINE)
#: A number as programs print it: thousands with commas, decimals, a sign.
NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?")
#: By how much a figure may differ: scores of small test sets, probabilities, weights, counts of features.
RELATIVE, POINTS = 0.1, 0.2
#: Measures of the machine, which are not compared.
MEASURED = re.compile(r"\d[\d,.]* ?[kMG]? ?(?:s|ms|B|bytes|tokens/s)\b|[▁-▏]+")
TIMEOUT_S = 120.0


class Example(NamedTuple):
    """A block of a page, and what it prints if the page shows it."""

    language: str
    code: str
    shown: str | None
    line: int


def examples(page: Path) -> list[Example]:
    """Give the blocks of a page that are run here, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Example(
            found["language"], found["code"], found["shown"], text.count("\n", 0, found.start("code")) + 1
        )
        for found in BLOCK.finditer(text)
        if found["other"] is None
    ]


class Reader:
    """Someone who does what a page says, in a folder of their own."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._names: dict[str, Any] = {"__name__": "__main__"}
        bin_path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {
            **os.environ,
            "PATH": bin_path,
            "TAGSMITH_URL": url,
            "XDG_CONFIG_HOME": str(folder / ".config"),
            "COLUMNS": "140",
        }

    def follow(self, page: Path) -> None:
        """Run every example of a page, and see that each prints what the page shows."""
        for example in examples(page):
            where = f"{page.relative_to(ROOT)}:{example.line}"
            printed = (
                self._shell(example.code, where) if example.language == "sh" else self._python(example.code)
            )
            if example.shown is not None:
                assert same(example.shown, printed), f"{where} printed\n{printed}\nand shows\n{example.shown}"

    def _shell(self, code: str, where: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", STARTED.sub("", code)],
            cwd=self._folder,
            env=self._environment,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{where} failed\n{done.stdout}"
        return done.stdout

    def _python(self, code: str) -> str:
        printed = io.StringIO()
        before = dict(os.environ)
        with contextlib.redirect_stdout(printed), contextlib.chdir(self._folder):
            os.environ.update(self._environment)
            try:
                exec(code, self._names)
            finally:
                os.environ.clear()
                os.environ.update(before)
        return printed.getvalue()

    def close(self) -> None:
        """Close clients that examples have opened."""
        for each in self._names.values():
            # A model or a job may come from a client without a name of its own.
            client = getattr(each, "_client", each)
            if isinstance(client, Client):
                client.close()


def same(shown: str, printed: str) -> bool:
    """Compare what a page shows with what was printed.

    Words and whole numbers must be equal. Figures with decimals or with thousands may differ by a tenth of their
    value, or by 0.2; times, speeds, sizes and bars may be any.
    """
    pattern = re.escape(_plain(NUMBER.sub(_kept, MEASURED.sub("~", shown))))
    pattern = re.sub(r"(?m)^\\\.\\\.\\\.\n", "(?:.*\n)*?", pattern.replace("\\\n", "\n"))
    pattern = pattern.replace(r"\.\.\.", "[^\n]*")
    found = re.fullmatch(pattern.replace("§", f"({NUMBER.pattern})"), _plain(MEASURED.sub("~", printed)))
    if found is None:
        return False
    figures = [_value(each) for each in NUMBER.findall(MEASURED.sub("~", shown)) if _figure(each)]
    return all(_close(one, _value(other)) for one, other in zip(figures, found.groups(), strict=True))


def _plain(text: str) -> str:
    """Blanks between columns of a table depend on the widths of their values."""
    return re.sub(r" +$", "", re.sub(r"[ \t]+", " ", text), flags=re.MULTILINE).strip() + "\n"


def _figure(number: str) -> bool:
    return "." in number or "," in number


def _kept(number: re.Match[str]) -> str:
    return "§" if _figure(number[0]) else number[0]


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= max(RELATIVE * abs(one), POINTS)
