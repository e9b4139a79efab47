"""All configuration: read from the environment once and passed down.

Each field of `Settings` is the environment variable `TAGSMITH_<FIELD>` in capitals. This is the only module of the
server that reads the environment. The descriptions and defaults of the fields are also the table in `docs/settings.md`.
"""

import ipaddress
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.suggest import did_you_mean
from tagsmith.core.service import machine
from tagsmith.core.service.queues import QUEUES

PREFIX = "TAGSMITH_"
#: Variables with this prefix that only clients read.
OTHER_VARIABLES = ("TAGSMITH_URL", "TAGSMITH_KEY", "TAGSMITH_CONFIG")

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

#: Who may call: callers with a key, or anyone. The second value is long, so that nobody sets it by accident.
KEYS: Final = "keys"
ANYONE: Final = "anyone-without-keys"

#: Loopback, so that a first try on a laptop does not open a service without keys to the network.
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
#: A crash that a job itself causes happens again. A second attempt distinguishes it from an accident.
MAX_LOSSES = 2

#: A quarter for each of two files that are read at once, a quarter for JSON bodies, and a quarter for the rest.
MEMORY_PARTS = 4
#: The share of a machine's memory that jobs may use; the rest is for the system and for serving.
MEMORY_SHARE = 0.8

#: A host as the header `Host` names it, in lower case: a name or address, IPv6 in brackets, and perhaps a port.
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")

LogLevel = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Accepts:
    """The values that a field accepts, in words: the end of the sentence "it must be ..."."""

    words: str


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _queue_names(text: str) -> str:
    names = _split(text)
    if not names or not set(names) <= set(QUEUES):
        raise ValueError(text)
    return text


def _hosts(text: str) -> str:
    if not all(_HOST.fullmatch(host) for host in _split(text.lower())):
        raise ValueError(text)
    return text


def _database_url(text: str) -> str:
    if "://" not in text:
        raise ValueError(text)
    return text


def _redis_url(text: str) -> str:
    if not text.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError(text)
    return text


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _networks(text: str) -> str:
    for name in _split(text):
        ipaddress.ip_network(name, strict=False)  # raises ValueError
    return text


def _split(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _default_database(values: dict[str, Any]) -> str:
    return f"sqlite:///{values['data_dir'] / 'tagsmith.db'}"


_POSITIVE = Accepts("a positive number")
Positive = Annotated[int, Field(gt=0), _POSITIVE]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False), _POSITIVE]
Count = Annotated[int, Field(ge=0), Accepts("0 or more")]
#: A hundred years: dates beyond the year 9999 or before the first cannot be computed with.
Days = Annotated[int, Field(ge=0, le=36_500), Accepts("0 to 36500")]
Port = Annotated[int, Field(ge=0, le=65535), Accepts("a port from 0 to 65535")]
Directory = Annotated[Path, AfterValidator(_absolute)]
QueueNames = Annotated[str, AfterValidator(_queue_names), Accepts(f"some of {', '.join(QUEUES)}")]
Proxies = Annotated[
    str, AfterValidator(_networks), Accepts("addresses or networks such as 10.0.0.1,10.1.0.0/16")
]
Hosts = Annotated[str, AfterValidator(_hosts), Accepts("hosts such as tags.example.org,[fd00::1]:8765")]
DatabaseUrl = Annotated[str, AfterValidator(_database_url), Accepts("a URL such as sqlite:///file.db")]
RedisUrl = Annotated[
    str,
    AfterValidator(_redis_url),
    Accepts("a URL such as redis://host:6379/0 or unix:///run/redis.sock"),
]
Access = Annotated[Literal["keys", "anyone-without-keys"], Accepts(f"{KEYS} or {ANYONE}")]
Level = Annotated[LogLevel, BeforeValidator(_lower), Accepts(f"one of {', '.join(get_args(LogLevel))}")]


class Settings(BaseSettings):
    """Configuration of one process. Sizes are in bytes and times in seconds.

    Fields that can hold a password have `repr=False`: no representation and no error message shows them.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True, str_strip_whitespace=True
    )

    host: str = Field(DEFAULT_HOST, description="Address that the API listens on.")
    port: Port = Field(
        DEFAULT_PORT, description="Port that the API listens on; 0 lets the system choose one."
    )
    access: Access = Field(
        KEYS,
        description=(
            "`keys`: callers need a key; on loopback only once a key exists. `anyone-without-keys`: nobody needs one."
        ),
    )
    allowed_hosts: Hosts = Field(
        "",
        description=(
            "Host names (with optional port, comma-separated) accepted in the `Host` header, in addition to loopback. "
            "If empty: only loopback while keys are not required; any host once they are."
        ),
    )
    trusted_proxies: Proxies = Field(
        "",
        description=(
            "Addresses or networks (comma-separated) of reverse proxies whose `X-Forwarded-For` and"
            " `X-Forwarded-Proto` are believed. Default: none."
        ),
    )
    data_dir: Directory = Field(
        Path(".tagsmith"),
        description="Data directory: SQLite database, Redis files, model cache.",
    )
    database_url: DatabaseUrl = Field(
        default_factory=_default_database,
        repr=False,
        description="SQLAlchemy URL of the database. Default: an SQLite file in the data directory.",
    )
    redis_url: RedisUrl | None = Field(
        None,
        repr=False,
        description=(
            "Redis URL: `redis://`, `rediss://` or `unix://`. Default: a private Redis that `tagsmith up` starts and"
            " stops."
        ),
    )

    api_processes: Positive = Field(1, description="Number of API processes that share the port.")
    workers: Count = Field(
        1,
        description="Number of worker processes; each runs one job at a time. Set to 0 on machines that only serve.",
    )
    quick_workers: Count = Field(
        1,
        description=(
            "Number of workers started by `tagsmith up` that take only quick jobs. At least one worker takes all jobs."
        ),
    )
    worker_queues: QueueNames = Field(
        "quick,slow", description="Queues that a worker takes jobs from: `quick`, `slow` or both."
    )
    worker_ready_file: Path | None = Field(
        None, description="File that a worker creates when it takes jobs, for health checks. Default: none."
    )
    job_memory_bytes: Positive | None = Field(
        None,
        description=(
            "Maximum memory of one job; a job that needs more is refused. Default: four fifths of the memory of the"
            " machine or container, divided by the number of workers."
        ),
    )
    read_memory_bytes: Positive | None = Field(
        None,
        description=(
            "Maximum memory to read one uploaded or stored file in the API, of which each process reads two at once."
            " Default: a quarter of the memory of the machine or container, divided by the number of API processes."
        ),
    )
    request_memory_bytes: Positive | None = Field(
        None,
        description=(
            "Maximum memory of all JSON bodies in one API process, received and parsed; further requests are refused."
            " Default: as for reading files."
        ),
    )
    max_queued_jobs: Positive = Field(10_000, description="Maximum number of queued jobs; more are refused.")

    max_upload_bytes: Positive = Field(
        256 * MIB, description="Maximum size of an upload as sent, before decompression."
    )
    # Bounds what a gzip bomb can cost.
    max_corpus_bytes: Positive = Field(
        1 * GIB,
        description="Maximum size of a corpus after decompression. Lexicons: 64 MiB or this, whichever is smaller.",
    )
    # A /tag body of 1,000,000 tokens is about 10 MB.
    max_json_bytes: Positive = Field(
        32 * MIB,
        description="Maximum size of a JSON body to tag. Other JSON bodies: 512 KiB or this, if it is less.",
    )
    # Real lines are under 1 KiB; this bounds what a file without newlines can cost.
    max_line_bytes: Positive = Field(1 * MIB, description="Maximum length of one line of an upload.")
    max_tag_sentences: Positive = Field(
        100_000, description="Maximum number of sentences in one `/tag` request."
    )
    # About a second of one core.
    max_tag_tokens: Positive = Field(
        1_000_000,
        description="Maximum number of tokens in one `/tag` request. Each character of a text counts as one.",
    )

    max_requests_per_second: PositiveFloat = Field(
        2000.0,
        description=(
            "Maximum request rate per key, or per client address while keys are not required. Callers on loopback"
            " without a key are not limited."
        ),
    )
    max_streams: Positive = Field(
        1000, description="Maximum number of open event streams in one API process."
    )
    max_streams_per_caller: Positive = Field(
        100, description="Maximum number of open event streams of one caller in one API process."
    )

    model_cache_bytes: Positive = Field(
        4 * GIB,
        description="Maximum size of the model files on local disk; the least recently used are removed first.",
    )

    lease_seconds: PositiveFloat = Field(
        30.0, description="A worker without a heartbeat for this long loses its job to another worker."
    )
    drain_seconds: float = Field(
        0.0,
        ge=0,
        le=3600,
        allow_inf_nan=False,
        description=(
            "Before an API process stops, `/readyz` returns 503 for this long while requests are still accepted. Set it"
            " to the time that a load balancer needs to notice."
        ),
    )
    keep_jobs_days: Days = Field(
        90,
        description=(
            "Jobs are deleted this many days after their end, with their events and output. Versions and their"
            " evaluations stay. 0 keeps all jobs."
        ),
    )
    keep_events_days: Days = Field(
        90, description="Events of a job are deleted this many days after its end. 0 keeps them with the job."
    )
    keep_outputs_days: Days = Field(
        30,
        description=(
            "Outputs of `tag` and `rank` jobs are deleted this many days after the end. 0 keeps them with the job."
        ),
    )
    keep_checkpoints_days: Days = Field(
        90,
        description=(
            "Paused jobs are cancelled when their checkpoint, which takes space, is this many days old. 0 keeps them."
        ),
    )
    keep_responses_days: Positive = Field(
        1,
        le=36_500,
        description="Days within which a request that is repeated with its `Idempotency-Key` is not carried out again.",
    )
    keep_audit_days: Days = Field(
        400, description="Entries of the audit are deleted after this many days. 0 keeps all entries."
    )
    max_losses: Positive = Field(
        MAX_LOSSES,
        description=(
            "A job fails when it lost its worker this many times without a checkpoint in between. Losses between which"
            " it made progress do not count."
        ),
    )
    # A third of the lease, so that two lost heartbeats in a row do no harm.
    heartbeat_seconds: PositiveFloat = Field(
        10.0, description="Interval at which a worker renews its lease; shorter than the lease."
    )
    reaper_seconds: PositiveFloat = Field(
        5.0,
        description="Interval at which each worker looks for jobs whose lease expired or whose message was not sent.",
    )
    checkpoint_seconds: PositiveFloat = Field(
        30.0,
        description=(
            "Minimum time between checkpoints. A lost worker repeats at most this much training plus one pass."
        ),
    )

    log_level: Level = Field(
        "info", description="Minimum level of log lines: `debug`, `info`, `warning` or `error`."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Make the constructor ignore the environment: only `from_env` reads it."""
        return (init_settings,)

    @classmethod
    def from_env(
        cls, environ: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None
    ) -> Self:
        """Read `TAGSMITH_*` from `environ`, by default that of the process. Unset or empty means the default.

        `overrides` are fields that override the environment, such as options of a command. None means no override.
        """
        source = EnvSettingsSource(cls)
        texts = (os.environ if environ is None else environ).items()
        source.env_vars = {name.lower(): text.strip() for name, text in texts if text.strip()}
        options = {name: value for name, value in (overrides or {}).items() if value is not None}
        return cls(**{**source(), **options})

    @classmethod
    def misspelt(cls, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return variables that are no settings but nearly so, with the setting that was probably meant."""
        given = {name: name.upper().removeprefix(PREFIX).lower() for name in environ or os.environ}
        others = {
            name: field
            for name, field in given.items()
            if name.upper().startswith(PREFIX)
            and field not in cls.model_fields
            and name.upper() not in OTHER_VARIABLES
        }
        meant = {name: did_you_mean(field, cls.model_fields) for name, field in others.items()}
        return {name: _variable(field) for name, field in meant.items() if field is not None}

    def replace(self, **changes: object) -> Self:
        """Copy these settings with some fields changed, and validate the copy."""
        return type(self)(**{**dict(self), **changes})

    def to_env(self) -> dict[str, str]:
        """Return the variables from which a child process reads the same settings."""
        return {PREFIX + name.upper(): str(value) for name, value in self if value is not None}

    def child_environment(self) -> dict[str, str]:
        """Return the environment of a child process: that of this process, with these settings."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        # One BLAS thread: the kernels are numba's, and idle BLAS threads of many processes only cost memory.
        return {"OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"} | inherited | self.to_env()

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the API."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts accepted in the `Host` header, in addition to loopback."""
        return _split(self.allowed_hosts.lower())

    @property
    def proxies(self) -> tuple[str, ...]:
        """Addresses and networks of proxies that may state the address of a caller."""
        return _split(self.trusted_proxies)

    @property
    def cache_dir(self) -> Path:
        """The directory of the model files that are served."""
        return self.data_dir / "cache"

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues a worker takes jobs from."""
        return _split(self.worker_queues)

    @property
    def job_memory(self) -> int:
        """The maximum memory of one job, in bytes."""
        if self.job_memory_bytes is not None:
            return self.job_memory_bytes
        return int(machine.memory_bytes() * MEMORY_SHARE) // max(1, self.workers)

    @property
    def read_memory(self) -> int:
        """The maximum memory to read one file in the API, in bytes."""
        return self.read_memory_bytes or self._memory_share

    @property
    def request_memory(self) -> int:
        """The maximum memory of all JSON bodies in one API process, in bytes."""
        return self.request_memory_bytes or self._memory_share

    @property
    def _memory_share(self) -> int:
        return machine.memory_bytes() // MEMORY_PARTS // self.api_processes

    @property
    def logging_level(self) -> int:
        """The threshold as a level of `logging`."""
        return logging.getLevelNamesMapping()[self.log_level.upper()]

    @model_validator(mode="wrap")
    @classmethod
    def _validate(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Use the default of empty fields, and raise Invalid for the first fault."""
        if isinstance(values, Mapping):
            values = {name: value for name, value in values.items() if value != ""}
        try:
            settings = handler(values)
        except ValidationError as error:
            # Not chained: pydantic's error adds nothing, and could show the input.
            raise _invalid(error.errors()[0]) from None
        if settings.heartbeat_seconds >= settings.lease_seconds:
            raise _invalid_value(
                "heartbeat_seconds", settings.heartbeat_seconds, "shorter than lease_seconds"
            )
        return settings


def trace_exporters(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the names of the trace exporters that the standard OpenTelemetry variables enable; none by default.

    The SDK reads all other variables itself.
    """
    environ = os.environ if environ is None else environ

    def value_of(*names: str) -> str:
        return next((text for name in names if (text := environ.get(name, "").strip().lower())), "")

    endpoint = value_of("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    chosen = value_of("OTEL_TRACES_EXPORTER") or ("otlp" if endpoint else "none")
    if value_of("OTEL_SDK_DISABLED") == "true":
        return ()
    protocol = value_of("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    otlp = "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
    names = [name.strip() for name in chosen.split(",")]
    return tuple(otlp if name == "otlp" else name for name in names if name not in ("", "none"))


def _invalid(fault: ErrorDetails) -> Invalid:
    name = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        return Invalid(f"There is no setting {name!r}.", code="invalid_setting")
    if fault["type"] in ("int_parsing", "float_parsing"):
        kind = fault["type"].removesuffix("_parsing")
        message = f"{_variable(name)} is {fault['input']!r}, which is not a valid {kind}."
        return Invalid(message, code="invalid_setting")
    return _invalid_value(name, fault["input"], _accepted(Settings.model_fields[name]) or fault["msg"])


def _invalid_value(name: str, value: object, accepted: str) -> Invalid:
    variable = _variable(name)
    shown = f"is {value!r}; it must be" if Settings.model_fields[name].repr else "must be"
    return Invalid(f"{variable} {shown} {accepted}.", code="invalid_setting")


def _accepted(field: FieldInfo) -> str:
    """Describe the values that a field accepts. Metadata of an optional field is inside its union."""
    inner = (each for kind in get_args(field.annotation) for each in getattr(kind, "__metadata__", ()))
    return next((each.words for each in (*field.metadata, *inner) if isinstance(each, Accepts)), "")


def _variable(name: str) -> str:
    return PREFIX + name.upper()
