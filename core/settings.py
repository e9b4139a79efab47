"""Everything that can be configured, read from the environment once and passed down.

Each field of `Settings` is the environment variable `TAGSMITH_<FIELD>` in capitals. This is the only module
that reads the environment.
"""

import dataclasses
import ipaddress
import logging
import os
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core import machine
from core.errors import Invalid
from core.queues import QUEUES

PREFIX = "TAGSMITH_"

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

#: Who may call: whoever has a key, or anyone at all. The second is spelled out, so that nobody says it by accident.
KEYS = "keys"
ANYONE = "anyone-without-keys"

#: Loopback, so that a first try on a laptop does not open a service without keys to the network.
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765

#: What jobs may have of a machine's memory; the rest is for the system and for serving.
MEMORY_SHARE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Configuration of one process. Sizes are in bytes and times in seconds."""

    #: Address the API listens on.
    host: str = DEFAULT_HOST
    #: Port the API listens on; 0 lets the system choose one.
    port: int = DEFAULT_PORT
    #: `keys`: asked for everywhere, on loopback once one was made. `anyone-without-keys`: never asked for.
    access: str = KEYS
    #: Where the embedded database, the private Redis and the model cache live.
    data_dir: Path = Path(".tagsmith")
    #: SQLAlchemy address of the database; empty means an SQLite file in `data_dir`.
    database_url: str = ""
    #: Address of Redis; None means a private one that `tagsmith up` starts and stops.
    redis_url: str | None = None

    #: API processes that share the port.
    api_processes: int = 1
    #: Worker processes; each trains one job at a time. 0 on a machine that only serves.
    workers: int = 1
    #: Of the workers of `tagsmith up`, how many take quick jobs only. The last one always takes all.
    quick_workers: int = 1
    #: The queues a worker takes jobs from, `quick`, `slow` or both.
    worker_queues: str = "quick,slow"
    #: The most memory a job may take; a job that needs more is refused. None: four fifths of the machine's or the
    #: container's, shared by its workers.
    job_memory_bytes: int | None = None
    #: Jobs that wait at one time; more are refused.
    max_queued_jobs: int = 10_000

    #: Upload as it comes over the wire, still compressed.
    max_upload_bytes: int = 256 * MIB
    #: Upload after decompression: what bounds a gzip bomb.
    max_corpus_bytes: int = 1 * GIB
    #: Any JSON body. A /tag body of 1,000,000 tokens is about 10 MB.
    max_json_bytes: int = 32 * MIB
    #: One line of a corpus. Real lines are under 1 KiB; this bounds what a file without newlines can cost.
    max_line_bytes: int = 1 * MIB
    #: Sentences in one /tag request.
    max_tag_sentences: int = 100_000
    #: Tokens in one /tag request; about a second of one core.
    max_tag_tokens: int = 1_000_000

    #: Requests of one key, or of one address where keys are not in force; not of this machine's own without a key.
    max_requests_per_second: float = 2000.0
    #: Event streams open at a time, in one API process and of one caller in it.
    max_streams: int = 1000
    max_streams_per_caller: int = 100

    #: Model files kept on local disk for serving, least recently used dropped first.
    model_cache_bytes: int = 4 * GIB

    #: A job whose worker was not heard of for this long is given to another one.
    lease_seconds: float = 30.0
    #: How often a worker renews its lease: a third of the lease, so that two losses in a row do no harm.
    heartbeat_seconds: float = 10.0
    #: How often each worker looks for lost and never-sent jobs.
    reaper_seconds: float = 5.0
    #: How much training a lost worker may cost: a checkpoint is stored at the first end of a pass after this long.
    checkpoint_seconds: float = 30.0

    #: Threshold of the logs: debug, info, warning or error.
    log_level: str = "info"

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_dir", Path(self.data_dir).expanduser().absolute())
        if not self.database_url:
            object.__setattr__(self, "database_url", f"sqlite:///{self.data_dir / 'tagsmith.db'}")
        if self.redis_url == "":
            object.__setattr__(self, "redis_url", None)
        object.__setattr__(self, "log_level", self.log_level.lower())
        self._check()

    @classmethod
    def from_env(
        cls, environ: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None
    ) -> "Settings":
        """Read `TAGSMITH_*` from `environ`, or from that of the process. Unset or empty means the default.

        `overrides` has fields that win over the environment, such as options of a command, if not None.
        """
        environ = os.environ if environ is None else environ
        kinds = typing.get_type_hints(cls)
        values: dict[str, object] = {}
        for field in dataclasses.fields(cls):
            name = PREFIX + field.name.upper()
            text = environ.get(name, "").strip()
            if text:
                values[field.name] = _parse(name, text, kinds[field.name])
        values |= {name: value for name, value in (overrides or {}).items() if value is not None}
        return cls(**values)  # type: ignore[arg-type]  # _parse followed the annotations

    def to_env(self) -> dict[str, str]:
        """Give the variables that make a child process read these very settings."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {PREFIX + name.upper(): str(value) for name, value in values.items() if value is not None}

    def child_environment(self) -> dict[str, str]:
        """Give the whole environment for a child process: that of this one, with these settings in it."""
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
    def cache_dir(self) -> Path:
        """Where model files are kept for serving."""
        return self.data_dir / "cache"

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues a worker takes jobs from."""
        return tuple(name.strip() for name in self.worker_queues.split(",") if name.strip())

    @property
    def job_memory(self) -> int:
        """The most bytes a job may take."""
        if self.job_memory_bytes is not None:
            return self.job_memory_bytes
        return int(machine.memory_bytes() * MEMORY_SHARE) // max(1, self.workers)

    @property
    def logging_level(self) -> int:
        """The threshold as `logging` numbers it."""
        return logging.getLevelNamesMapping()[self.log_level.upper()]

    def _check(self) -> None:
        if not 0 <= self.port <= 65535:
            raise _invalid("port", self.port, "a port from 0 to 65535")
        for name in ("workers", "quick_workers"):
            if getattr(self, name) < 0:
                raise _invalid(name, getattr(self, name), "0 or more")
        if not self.queues or not set(self.queues) <= set(QUEUES):
            raise _invalid("worker_queues", self.worker_queues, f"some of {', '.join(QUEUES)}")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if (
                field.name not in ("port", "workers", "quick_workers")
                and isinstance(value, (int, float))
                and not 0 < value < float("inf")
            ):
                raise _invalid(field.name, value, "a positive number")
        if self.heartbeat_seconds >= self.lease_seconds:
            raise _invalid("heartbeat_seconds", self.heartbeat_seconds, "shorter than lease_seconds")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise _invalid("log_level", self.log_level, "one of debug, info, warning, error")
        if self.access not in (KEYS, ANYONE):
            raise _invalid("access", self.access, f"{KEYS} or {ANYONE}")
        if "://" not in self.database_url:
            raise _invalid("database_url", self.database_url, "an address such as sqlite:///file.db")


def trace_exporters(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Give where the standard variables of OpenTelemetry send traces, as exporters call themselves; nowhere by default.

    Everything else that these variables say is read by its SDK.
    """
    environ = os.environ if environ is None else environ

    def said(*names: str) -> str:
        return next((text for name in names if (text := environ.get(name, "").strip().lower())), "")

    endpoint = said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    chosen = said("OTEL_TRACES_EXPORTER") or ("otlp" if endpoint else "none")
    if said("OTEL_SDK_DISABLED") == "true":
        return ()
    protocol = said("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    otlp = "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
    names = [name.strip() for name in chosen.split(",")]
    return tuple(otlp if name == "otlp" else name for name in names if name not in ("", "none"))


def _parse(name: str, text: str, kind: object) -> object:
    if isinstance(kind, types.UnionType):
        kind = next(option for option in typing.get_args(kind) if option is not types.NoneType)
    assert isinstance(kind, type)
    try:
        return kind(text)
    except ValueError as error:
        raise Invalid(
            f"{name} is {text!r}, which is not a valid {kind.__name__}", code="invalid_setting"
        ) from error


def _invalid(field: str, value: object, wanted: str) -> Invalid:
    return Invalid(f"{PREFIX}{field.upper()} is {value!r}; it must be {wanted}", code="invalid_setting")
