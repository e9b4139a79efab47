"""Entity tags and conditional requests (RFC 9110, section 13)."""

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header

from tagsmith.app.http.problems import NotModified

IfMatch = Annotated[str | None, Header(max_length=1000, description="ETag of the present state, or `*`.")]
IfNoneMatch = Annotated[str | None, Header(max_length=1000)]

_TAG = re.compile(r'(?P<weak>W/)?"(?P<opaque>[^"]*)"|(?P<bare>[^\s,"]+)')


@dataclass(frozen=True, slots=True)
class Expected:
    """The states of an alias or a policy that a request accepts; None means any."""

    seqs: frozenset[int] | None = None

    def expected_state(self, present: int) -> int | None:
        """Return the present state if it is accepted, else a state that does not match. None if any is accepted."""
        if self.seqs is None:
            return None
        return present if present in self.seqs else max(self.seqs)


def etag(value: object) -> str:
    """Format an entity tag."""
    return f'"{value}"'


def expected(if_match: str | None, if_none_match: str | None) -> Expected:
    """Parse the conditions of a request that changes an alias or a policy.

    A weak tag, or one of another service, matches no state. 0 is the state of an alias or a policy that does not exist.
    A negative number matches no state.
    """
    if if_none_match is not None and if_none_match.strip() == "*":
        return Expected(frozenset({0}))
    if if_match is None or if_match.strip() == "*":
        return Expected()
    seqs = {-1}
    for tag in _TAG.finditer(if_match):
        text = tag["opaque"] or tag["bare"] or ""
        if not tag["weak"] and re.fullmatch(r"[1-9][0-9]{0,9}", text):
            seqs.add(int(text))
    return Expected(frozenset(seqs))


def refuse_unchanged(if_none_match: str | None, present: str) -> None:
    """Raise NotModified if the caller already has the present representation."""
    if if_none_match is None:
        return
    tags = {
        tag["opaque"] if tag["opaque"] is not None else tag["bare"] for tag in _TAG.finditer(if_none_match)
    }
    if "*" in tags or present.strip('"') in tags:
        raise NotModified(present)


async def _expected(if_match: IfMatch = None, if_none_match: IfNoneMatch = None) -> Expected:
    return expected(if_match, if_none_match)


ExpectedDep = Annotated[Expected, Depends(_expected)]
