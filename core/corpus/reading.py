"""What readers of all formats say about a corpus they cannot read."""

from collections.abc import Sequence

from core.errors import Fault, Invalid

#: A reader stops looking after this many faults: nobody mends more at one go.
MAX_FAULTS = 100


def unreadable(faults: Sequence[Fault]) -> Invalid:
    """The error for a corpus with faulty lines."""
    lines = "1 line" if len(faults) == 1 else f"{len(faults)} lines"
    more = " or more" if len(faults) >= MAX_FAULTS else ""
    return Invalid(f"The corpus cannot be read: {lines}{more} at fault.", faults, code="invalid_corpus")


def no_tokens() -> Invalid:
    """The error for a corpus without any token."""
    return Invalid(
        "The corpus has no tokens.", [Fault("no token in the whole file", line=1)], code="empty_corpus"
    )


def undecodable(lines: bytes, lines_before: int) -> Fault | None:
    """The first byte of `lines` that is not UTF-8, if there is one."""
    try:
        lines.decode()
    except UnicodeDecodeError as error:
        line_start = lines.rfind(b"\n", 0, error.start) + 1
        line = lines_before + lines.count(b"\n", 0, error.start) + 1
        reason = f"not UTF-8: byte 0x{lines[error.start]:02X} at byte {error.start - line_start + 1}"
        return Fault(reason, line=line)
    return None
