"""Health and version of a server."""

from typing import Literal

from pydantic import BaseModel, Field


class Liveness(BaseModel):
    """The process responds."""

    status: Literal["ok"] = "ok"


class HealthCheck(BaseModel):
    """The state of one part that serving needs."""

    ok: bool
    fatal: bool = Field(description="Whether the service cannot work without it.")
    detail: str


class Readiness(BaseModel):
    """Whether the process can serve."""

    status: Literal["ready", "degraded"]
    checks: dict[str, HealthCheck]
    reasons: list[str] = Field(description="What is wrong, if anything.")


class ServerVersion(BaseModel):
    """Which code the server runs."""

    name: Literal["tagsmith"] = "tagsmith"
    version: str
    revision: str | None
    code_version: str = Field(description="As recorded with every model version that this code trains.")
    python: str
