"""Identifiers that sort by the time they were made."""

import secrets
import time

# Crockford's alphabet, lower case: its order is the order of the characters, so ids sort as the numbers do.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 26


def new_id(prefix: str) -> str:
    """Make an id such as `job_01hzy3...`: 48 bits of milliseconds, then 80 random bits."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    characters = [ALPHABET[number >> shift & 31] for shift in range(5 * (LENGTH - 1), -1, -5)]
    return f"{prefix}_{''.join(characters)}"
