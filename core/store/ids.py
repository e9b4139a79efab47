"""Identifiers that sort by creation time."""

import secrets
import time
from typing import Annotated

from pydantic import StringConstraints

# Crockford's Base32 in lower case. Its characters are in ascending order, so ids sort like their numbers.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 26

#: The id of a corpus, as a spec names it.
CorpusId = Annotated[str, StringConstraints(pattern=r"^crp_[a-z0-9]{1,64}$")]


def new_id(prefix: str) -> str:
    """Make an id such as `job_01hzy3...`: 48 bits of milliseconds, then 80 random bits."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    characters = [ALPHABET[number >> shift & 31] for shift in range(5 * (LENGTH - 1), -1, -5)]
    return f"{prefix}_{''.join(characters)}"
