"""What the server answers, as the client gives it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

#: States a job never leaves.
TERMINAL = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """An uploaded corpus."""

    id: str
    name: str
    format: str
    options: dict[str, Any]
    sentences: int
    tokens: int
    columns: list[str]
    labels: list[str]
    sha256: str
    size_bytes: int
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """An uploaded lexicon; its id is made from kind and content."""

    id: str
    name: str
    kind: str
    entries: int
    classes: int
    sha256: str
    size_bytes: int
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The features of a sentence, the templates in each syntax, and what a corpus would produce."""

    columns: int
    templates: dict[str, Any]
    edges: bool
    features: list[list[str]]
    counts: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it stood when it was asked for."""

    id: str
    kind: str
    state: str
    spec: dict[str, Any]
    attempt: int
    created_at: str
    progress: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    retry_of: str | None = None
    queue: str = "slow"
    worked_seconds: float = 0.0
    started_at: str | None = None
    finished_at: str | None = None

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.state in TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened to a job. A `progress` event is a sign of life in passing: unnumbered, and not kept."""

    type: str
    seq: int | None = None
    level: str = "info"
    at: str | None = None
    message: str = ""
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model: a name with numbered versions."""

    name: str
    latest: int | None = None
    aliases: dict[str, int] = field(default_factory=dict)
    created_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One trained version of a model; it never changes."""

    model: str
    version: int
    active_features: int
    train_seconds: float
    metrics: dict[str, Any]
    trainer: dict[str, Any]
    spec: dict[str, Any]
    size_bytes: int
    sha256: str
    seed: int
    code_version: str
    created_at: str
    objective: float | None = None
    corpus: str | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What a template has in a version; one that was dropped has nothing."""

    name: str
    edge: bool
    kept: bool
    norm: float
    active_features: int
    attributes: int
    size_bytes: int
    gain: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A name that stands for one version; `seq` rises with each move and is its ETag."""

    model: str
    alias: str
    version: int
    seq: int
    updated_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One entry of an alias's history."""

    seq: int
    action: str
    from_version: int | None
    to_version: int
    at: str
    to_seq: int | None = None
    actor: str | None = None
    reason: str | None = None
    request_id: str | None = None
    forced: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What may be promoted and what is kept of a model; `seq` rises with each change and is its ETag."""

    model: str
    promotion: dict[str, Any] | None
    retention: dict[str, Any] | None
    seq: int
    updated_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPlan:
    """Which versions of a model would be removed, and which kept and why."""

    model: str
    keep_last: int
    keep_rollbacks: int
    in_force: bool
    size_bytes: int
    remove: list[dict[str, Any]]
    keep: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """Tagged sentences, and which version did it. Only the part that was asked for is there."""

    model: str
    version: int
    tags: list[list[str]] = field(default_factory=list)
    spans: list[list[dict[str, Any]]] = field(default_factory=list)
    conll: str = ""
    probabilities: list[float] = field(default_factory=list)
    marginals: list[list[float]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    distributions: list[list[list[float]]] = field(default_factory=list)
    nbest: list[dict[str, Any]] = field(default_factory=list)
    explain: list[dict[str, Any]] = field(default_factory=list)


def make(kind: type[T], values: Mapping[str, Any]) -> T:
    """Build a dataclass from a response; fields that a newer server adds are left out."""
    known = {item.name for item in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all kinds here are dataclasses
    return kind(**{key: value for key, value in values.items() if key in known})
