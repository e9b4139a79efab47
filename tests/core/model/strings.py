"""A CRF as CRF++ and Wapiti have it, slow and obvious: templates make strings, and strings have weights."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

Rows = Sequence[Sequence[str]]
_MACRO = re.compile(r'%([xtmXTM])\[(@?)(-?\d+),(\d+)(?:,"([^"]*)")?\]')
#: The expressions that tests use, as Python says them.
_EXPRESSIONS = {r"^\u": "^[A-ZÄÖÜÉ]", r"\d": "[0-9]", r"^..": "^.."}


def _value(rows: Rows, at: int, column: int, syntax: str) -> str:
    n = len(rows)
    if 0 <= at < n:
        return rows[at][column]
    distance = at if at < 0 else at - n + 1
    if syntax == "crf++":
        return f"_B{distance:+d}"
    return f"_x{distance:+d}" if abs(distance) < 5 else f"_x{'-' if distance < 0 else '+'}#"


def expanded(line: str, rows: Rows, t: int, syntax: str = "crf++") -> str:
    """What a template makes at a token."""

    def command(found: re.Match[str]) -> str:
        letter, absolute, row, column, expression = found.groups()
        at = t + int(row) if not absolute else int(row) - 1 if int(row) > 0 else len(rows) + int(row)
        value = _value(rows, at, int(column), syntax)
        if expression is not None:
            match = re.search(_EXPRESSIONS[expression], value)
            value = str(bool(match)).lower() if letter in "tT" else match[0] if match else ""
        return value.lower() if letter in "XM" else value

    return _MACRO.sub(command, line)


@dataclass(frozen=True)
class StringCrf:
    """Weights of strings: a list of one a label, or of one a pair, the label before first."""

    labels: Sequence[str]
    templates: Sequence[str]
    singles: dict[str, list[float]]
    pairs: dict[str, list[float]]
    syntax: str = "crf++"

    def tag(self, rows: Rows) -> list[str]:
        """The best labels, by trying every label before every other."""
        size = len(self.labels)
        best: list[tuple[float, list[int]]] = []
        for t in range(len(rows)):
            made = [expanded(line, rows, t, self.syntax) for line in self.templates]
            state = [sum(self.singles[m][y] for m in made if m in self.singles) for y in range(size)]
            edge = [sum(self.pairs[m][k] for m in made if m in self.pairs) for k in range(size * size)]
            if t == 0:
                best = [(state[y], [y]) for y in range(size)]
                continue
            best = [
                max(
                    ((best[b][0] + edge[b * size + y] + state[y], [*best[b][1], y]) for b in range(size)),
                    key=lambda path: path[0],
                )
                for y in range(size)
            ]
        return [self.labels[y] for y in max(best, key=lambda path: path[0])[1]] if rows else []

    def crfpp(self, factor: float = 1.0) -> str:
        """The text model that CRF++ would write."""
        features, weights = [], []
        for text, own in sorted({**self.singles, **self.pairs}.items()):
            features.append(f"{len(weights)} {text}")
            weights += own
        head = f"version: 100\ncost-factor: {factor}\nmaxid: {len(weights)}\nxsize: 2"
        parts = [[head], self.labels, self.templates, features, [f"{w:.16f}" for w in weights]]
        return "\n\n".join("\n".join(part) for part in parts) + "\n"

    def wapiti(self, kind: str = "2#") -> bytes:
        """The model that Wapiti would write."""

        def strings(each: Sequence[str]) -> bytes:
            return b"".join(b"%d:%s,\n" % (len(text.encode()), text.encode()) for text in each)

        texts = list({**self.singles, **self.pairs})
        weights = [w for text in texts for own in (self.singles, self.pairs) for w in own.get(text, ())]
        lines = [f"{i}={w.hex()}\n" for i, w in enumerate(weights) if w]
        head = f"#mdl#{kind}{len(lines)}\n#rdr#{len(self.templates)}/2/0\n".encode()
        lists = [b"#qrk#%d\n" % len(each) + strings(each) for each in (self.labels, texts)]
        return head + strings(self.templates) + b"".join(lists) + "".join(lines).encode()
