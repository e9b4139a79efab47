"""Error responses and failed jobs as exceptions."""

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from tagsmith.wire import Job

#: The most faults that the message of an error lists. The attribute `errors` has all of them.
SHOWN_FAULTS = 10


class ApiError(Exception):
    """The server returned a problem. The attributes hold its parts; `retry_after_s` is when to try again, if known."""

    def __init__(
        self, status: int, problem: Mapping[str, Any], *, retry_after_s: float | None = None
    ) -> None:
        self.status = status
        self.problem = dict(problem)
        self.code: str = problem.get("code", "unknown")
        self.detail: str = problem.get("detail", "")
        self.request_id: str = problem.get("request_id", "")
        self.errors: list[dict[str, Any]] = list(problem.get("errors", ()))
        self.retry_after_s = retry_after_s
        super().__init__(status, problem)

    def __str__(self) -> str:
        lines = [f"{self.status} {self.code}: {self.detail}", *map(_line_of, self.errors[:SHOWN_FAULTS])]
        if len(self.errors) > SHOWN_FAULTS:
            lines.append(f"  and {len(self.errors) - SHOWN_FAULTS} more")
        if self.status >= httpx.codes.INTERNAL_SERVER_ERROR and self.request_id:
            lines.append(f"  (request {self.request_id}, as in the log of the server)")
        return "\n".join(lines)


class ServerAway(httpx.ConnectError):
    """Nothing answers at the address of the server."""

    @classmethod
    def of(cls, error: httpx.ConnectError) -> "ServerAway":
        """Return the error with the address and what to do."""
        url = error.request.url
        address = f"{url.scheme}://{url.netloc.decode()}"
        message = f"Nothing answers at {address}. Start it with `tagsmith up`, or set TAGSMITH_URL."
        return cls(message, request=error.request)


class JobFailed(Exception):
    """A job failed or was cancelled. `job` is the job, and `code` the code of its error."""

    def __init__(self, job: Job) -> None:
        error = job.error or {}
        self.job = job
        self.code: str = error.get("code", job.state)
        super().__init__(job)

    def __str__(self) -> str:
        what = f"The {self.job.kind} job {self.job.id}"
        if self.job.state == "cancelled":
            return f"{what} was cancelled."
        error = self.job.error or {}
        lines = [f"{what} {self.job.state} ({self.code}): {error.get('message') or error.get('detail', '')}"]
        return "\n".join([*lines, *map(_line_of, error.get("errors", ()))])


def raise_for_problem(response: httpx.Response, hints: Mapping[str, str] | None = None) -> None:
    """Raise ApiError if the response, whose body has been read, is an error. `hints` are added by its code."""
    if not response.is_error:
        return
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or "code" not in problem:
        raise not_tagsmith(response)
    if (hint := (hints or {}).get(problem["code"])) is not None:
        problem["detail"] = f"{problem.get('detail', '')} {hint}".strip()
    raise ApiError(
        response.status_code, problem, retry_after_s=_seconds_of(response.headers.get("Retry-After"))
    )


def not_tagsmith(response: httpx.Response) -> ApiError:
    """The error for a response that Tagsmith does not make: of another program, or of a proxy on the way."""
    url = response.request.url
    detail = (
        f"{url.scheme}://{url.netloc.decode()} answers ({response.status_code}), but not as Tagsmith does. "
        "Correct the address."
    )
    problem = {"code": "not_a_problem", "detail": detail, "body": response.text[:200]}
    retry_after_s = _seconds_of(response.headers.get("Retry-After"))
    return ApiError(response.status_code, problem, retry_after_s=retry_after_s)


def _seconds_of(retry_after: str | None) -> float | None:
    """Read a `Retry-After`: a number of seconds, or a time."""
    if retry_after is None:
        return None
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return None


def _line_of(location: Mapping[str, Any]) -> str:
    """A fault on a line of its own, after its place: a line of a file, a field of the body, or a parameter."""
    line = location.get("line")
    places = [
        f"line {line}" if line is not None else "", location.get("pointer"), location.get("parameter"),
    ]  # fmt: skip
    where = ", ".join(place for place in places if place)
    return f"  {where + ': ' if where else ''}{location.get('detail', '')}"
