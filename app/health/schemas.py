"""Shapes of health on the wire."""

from typing import Literal

from pydantic import BaseModel, Field


class Live(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Check(BaseModel):
    """One part that was looked at."""

    ok: bool
    fatal: bool = Field(description="Whether the service cannot work without it.")
    detail: str


class Ready(BaseModel):
    """Whether the process can serve."""

    status: Literal["ready", "degraded"]
    checks: dict[str, Check]
    reasons: list[str] = Field(description="What is wrong, if anything.")


class Version(BaseModel):
    """Which code runs."""

    name: Literal["tagsmith"] = "tagsmith"
    version: str
    revision: str | None
    code_version: str = Field(description="As recorded on every version that this code trains.")
    python: str
