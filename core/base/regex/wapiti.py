"""The dialect `wapiti`: a sequence of characters, each once, optional, or repeated."""

import unicodedata

from tagsmith.core.base.regex.characters import anything, character
from tagsmith.core.base.regex.parser import Parser
from tagsmith.core.base.regex.program import END, FOUND, SPLIT, START, TAKE, Step, Test


def _punctuation(c: str) -> bool:
    return unicodedata.category(c)[0] in "PS"


_CLASSES: dict[str, Test] = {
    "a": str.isalpha, "d": str.isdecimal, "l": str.islower, "p": _punctuation, "s": str.isspace, "u": str.isupper,
    "w": str.isalnum,
}  # fmt: skip


class WapitiParser(Parser):
    """Wapiti's subset: a sequence of characters, each once, optional, or repeated."""

    def program(self) -> list[Step]:
        if self.next == "^":
            self.emit(START)
            self.at += 1
        while self.next:
            if self.next == "$" and self.at + 1 == len(self.pattern):
                self.emit(END)
                break
            self._item()
        self.emit(FOUND)
        return self.steps

    def _item(self) -> None:
        if self.next in "*?":
            raise self.wrong(
                f"No character is before {self.next!r}. Write \\{self.next} for a literal {self.next}."
            )
        if self.next == "\\":
            test = self.escaped(_CLASSES)
        else:
            test = anything if self.next == "." else character(self.next)
            self.at += 1
        repeat = self.next
        if repeat not in ("*", "?"):
            self.emit(TAKE, test)
            return
        self.at += 1
        first = self.emit(SPLIT)
        self.emit(TAKE, test)
        if repeat == "*":
            self.starred(first, lazy=True)
        else:
            self.optional(first, lazy=False)
