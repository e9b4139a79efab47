"""Tables as CSV."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def csv_of(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table. None becomes an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def error_of(row: Mapping[str, Any]) -> str | None:
    """Return the error message of a failed run, else None."""
    error = row.get("error")
    return None if error is None else str(error["message"])
