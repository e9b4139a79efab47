"""The definition of a job kind. Each kind is one file in `kinds/`, which sets `KIND` to a `JobKind`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ConfigDict

from tagsmith.core.jobs.input_checks import InputChecks
from tagsmith.core.jobs.resources import JobResources
from tagsmith.core.jobs.runner_interface import JobRun
from tagsmith.core.jobs.spec import JobSpec, Promotion

S = TypeVar("S", bound=JobSpec)

#: The result of a job as it is stored.
Stored = Mapping[str, Any]


class Result(BaseModel):
    """Base class of job results. The event that ends a job omits `curve`, `curves` and `table`, which are long."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def stored(self) -> dict[str, Any]:
        """Return the result as it is stored: the fields that were set."""
        return self.model_dump(exclude_unset=True)


@dataclass(frozen=True, slots=True)
class Example:
    """A spec for the documentation."""

    summary: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A posted job that has passed its checks."""

    #: The spec, with references to models replaced by the versions that they name now.
    spec: JobSpec
    #: Maximum number of tokens that the job processes, over all passes and runs. Decides its queue.
    tokens: int
    #: The model that the job trains or uses. Job lists are filtered by it.
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """The file that a job has written. Its blob id is `jobs.output_id`."""

    media_type: str
    #: The extension of the file name.
    extension: str
    size_bytes: int
    sha256: str
    #: The version that made it, such as `name:3`.
    made_by: str


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class JobKind(Generic[S]):
    """Everything that the service knows about one kind of job."""

    spec: type[S]
    result: type[Result]
    #: Examples by their name in the documentation.
    examples: Mapping[str, Example]
    #: Checks a posted job, in the transaction that stores it.
    prepare: Callable[[S, InputChecks], Prepared]
    #: Runs the job, in a worker.
    run: Callable[[S, JobResources], JobRun]
    #: Returns the alias that the job moves, if any.
    promotion: Callable[[S], Promotion | None] = field(default=lambda _: None)
    #: Return the result as CSV, as learning curves in SVG, as a file; None if the kind does not have it.
    table: Callable[[Stored], str] | None = None
    plot: Callable[[Stored], str] | None = None
    output: Callable[[Stored], Output] | None = None
    #: Position in the documentation: lower first, then by name.
    position: int = 100

    @property
    def name(self) -> str:
        """The value of `kind` in its specs."""
        name: str = get_args(self.spec.model_fields["kind"].annotation)[0]
        return name
