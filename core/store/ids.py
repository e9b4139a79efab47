"""Identifiers that sort by creation time."""

import secrets
import time
from typing import Annotated

from pydantic import StringConstraints

# Crockford's Base32 in lower case. Its characters are in ascending order, so ids sort like their numbers.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 26


class NamesCorpus:
    """Marks a field of a spec that names a corpus. When a job is posted, the id replaces the reference."""


#: A corpus, as a spec names it: its id, its name (the newest upload), or `name:2`.
CorpusReference = Annotated[
    str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=220), NamesCorpus()
]


def new_id(prefix: str) -> str:
    """Make an id such as `job_01hzy3...`: 48 bits of milliseconds, then 80 random bits."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    characters = [ALPHABET[number >> shift & 31] for shift in range(5 * (LENGTH - 1), -1, -5)]
    return f"{prefix}_{''.join(characters)}"
