"""Limits on the size of what is read."""

from tagsmith.core.base.errors import TooLarge


def decoded_too_large(limit_bytes: int) -> TooLarge:
    """Return the error for data that is larger than the limit once it is decoded."""
    return TooLarge(
        f"The decoded data exceeds {limit_bytes} bytes. Split it into smaller files.", code="corpus_too_large"
    )
