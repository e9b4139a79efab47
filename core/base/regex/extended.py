"""The dialect `extended`: the usual syntax, parsed by recursive descent."""

from tagsmith.core.base.regex.characters import Members, anything, character
from tagsmith.core.base.regex.parser import Parser
from tagsmith.core.base.regex.program import END, FOUND, SPLIT, START, TAKE, Step, Test

#: The deepest nesting of groups, far below Python's recursion limit.
MAX_DEPTH = 50
MAX_REPEAT = 200

_CLASSES: dict[str, Test] = {
    "d": str.isdecimal, "s": str.isspace, "w": lambda c: c.isalnum() or c == "_",
}  # fmt: skip
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r"}


class ExtendedParser(Parser):
    """The usual syntax, parsed by recursive descent."""

    def program(self) -> list[Step]:
        self._choice(0)
        if self.next:
            raise self.wrong("A ) has no (. Write \\) for a literal ).")
        self.emit(FOUND)
        return self.steps

    def control(self, c: str) -> str:
        if c in _CONTROLS:
            return _CONTROLS[c]
        if c.isalnum():
            raise self.wrong(f"\\{c} is not supported. There are no back references and no lookaround.")
        return c

    def _choice(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self.wrong(f"Groups are nested too deeply. Nest at most {MAX_DEPTH}.")
        begin, ends = len(self.steps), []
        while True:
            self._sequence(depth)
            if self.next != "|":
                break
            self.at += 1
            # Insert a split before the alternative just read, and append a jump to the common end.
            self._shift(begin)
            ends.append(self.emit(SPLIT))
            self.aim(begin, begin + 1, len(self.steps))
            begin = len(self.steps)
        for end in ends:
            self.aim(end, len(self.steps))

    def _sequence(self, depth: int) -> None:
        while self.next and self.next not in "|)":
            first = len(self.steps)
            self._atom(depth)
            self._repeats(first)

    def _atom(self, depth: int) -> None:
        c = self.next
        if c in "*+?{":
            raise self.wrong(f"There is nothing before {c!r} to repeat.")
        if c == "\\":
            self.emit(TAKE, self.escaped(_CLASSES))
            return
        if c == "[":
            self.emit(TAKE, self._set())
            return
        self.at += 1
        if c == "(":
            if self.next == "?":
                if self.pattern[self.at : self.at + 2] != "?:":
                    raise self.wrong("Write a group as (...) or (?:...).")
                self.at += 2
            self._choice(depth + 1)
            if self.next != ")":
                raise self.wrong("A ( has no ). Write \\( for a literal (.")
            self.at += 1
        elif c in "^$":
            self.emit(START if c == "^" else END)
        else:
            self.emit(TAKE, anything if c == "." else character(c))

    def _repeats(self, first: int) -> None:
        """Read the repeat after an atom, if there is one. The steps of the atom begin at `first`."""
        c = self.next
        if not c or c not in "*+?{":
            return
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(c) or self._counts()
        self.at += 1
        lazy = self.next == "?"
        self.at += lazy
        if self.next and self.next in "*+?{":
            raise self.wrong("A repeat cannot be repeated. Use a group.")
        if len(self.steps) > first:  # repeating an empty operand changes nothing
            self._repeat(first, least, most, lazy=lazy)

    def _repeat(self, first: int, least: int, most: int | None, *, lazy: bool) -> None:
        """Repeat the steps from `first` on: `least` copies, then optional ones, or a loop without `most`."""
        operand = self.steps[first:]
        if not least:
            del self.steps[first:]
        for _ in range(least - 1):
            self.paste(operand, first)
        if most is None:
            split = self.emit(SPLIT)
            self.paste(operand, first)
            self.starred(split, lazy=lazy)
            return
        splits = []
        for _ in range(most - least):
            splits.append(self.emit(SPLIT))
            self.paste(operand, first)
        for split in splits:
            self.optional(split, lazy=lazy)

    def _counts(self) -> tuple[int, int | None]:
        """Read {n}, {n,} or {n,m} up to the closing brace, which is left to the caller."""
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, self.at)].partition(",")
        digits = low.isascii() and low.isdigit() and (not high or (high.isascii() and high.isdigit()))
        if end < 0 or not digits or len(low) > 3 or len(high) > 3:
            raise self.wrong("Write a repeat as {2}, {2,} or {2,4}.")
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise self.wrong(f"A repeat counts up to {MAX_REPEAT}. Give the smaller number first.")
        self.at = end
        return least, most

    def _set(self) -> Test:
        """Read [abc], [a-z], [^...]."""
        self.at += 1
        negated = self.next == "^"
        self.at += negated
        members = Members()
        while self.next != "]" or members.empty:
            low = self._member()
            if not isinstance(low, str):
                members.classes.add(low)
            elif self.next == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._member()
                if not isinstance(high, str) or high < low:
                    raise self.wrong("A range must go from a smaller to a greater character.")
                members.ranges.append((low, high))
            else:
                members.ranges.append((low, low))
        self.at += 1
        return members.test(negated=negated)

    def _member(self) -> str | Test:
        """Read a character or a class of a set."""
        c = self.next
        if not c:
            raise self.wrong("A [ has no ]. Write \\[ for a literal [.")
        if c != "\\":
            self.at += 1
            return c
        name = self.pattern[self.at + 1 : self.at + 2]
        if name and name.lower() in _CLASSES:
            return self.escaped(_CLASSES)
        self.at += 2
        if not name:
            raise self.wrong("A [ has no ]. Write \\[ for a literal [.")
        return self.control(name)

    def _shift(self, begin: int) -> None:
        """Insert a split at `begin`."""
        self.spend(len(self.steps) - begin)
        moved = [
            (operation, test, tuple(target + 1 for target in targets))
            for operation, test, targets in self.steps[begin:]
        ]
        del self.steps[begin:]
        self.emit(SPLIT)
        self.steps += moved
