"""Error responses as exceptions."""

from collections.abc import Mapping
from typing import Any

import httpx


class ApiError(Exception):
    """The server returned a problem. The attributes hold its parts."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = dict(problem)
        self.code: str = problem.get("code", "unknown")
        self.detail: str = problem.get("detail", "")
        self.request_id: str = problem.get("request_id", "")
        self.errors: list[dict[str, Any]] = list(problem.get("errors", ()))
        super().__init__(f"{status} {self.code}: {self.detail}{''.join(map(_line_of, self.errors[:5]))}")


def raise_for_problem(response: httpx.Response) -> None:
    """Raise ApiError if the response, whose body has been read, is an error."""
    if not response.is_error:
        return
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"code": "not_a_problem", "detail": response.text[:200]}
    raise ApiError(response.status_code, problem)


def _line_of(location: Mapping[str, Any]) -> str:
    line = f"line {location['line']}" if "line" in location else ""
    where = location.get("pointer") or location.get("parameter") or line
    return f"\n  {where}: {location.get('detail', '')}"
