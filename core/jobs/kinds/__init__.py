"""The job kinds, one module each. The package discovers its modules; each module defines `KIND`."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Union

from pydantic import Field, TypeAdapter

from tagsmith.core.base.spec import validated
from tagsmith.core.jobs.kind import JobKind
from tagsmith.core.jobs.spec import JobSpec


@cache
def known() -> Mapping[str, JobKind[Any]]:
    """Return every kind by name, in the order of the documentation."""
    modules = [importlib.import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]
    found: list[JobKind[Any]] = [module.KIND for module in modules]
    return MappingProxyType({each.name: each for each in sorted(found, key=lambda k: (k.position, k.name))})


def of(spec: JobSpec) -> JobKind[Any]:
    """Return the kind of a spec."""
    return known()[spec.kind]


@cache
def posted() -> Any:
    """Return the type of a submitted job: the union of all specs, discriminated by `kind`."""
    specs = tuple(kind.spec for kind in known().values())
    return Annotated[Union[specs], Field(discriminator="kind")]  # noqa: UP007  # built at run time


@cache
def _adapter(kind: str | None) -> TypeAdapter[Any]:
    return TypeAdapter(posted() if kind is None else known()[kind].spec)


def parse_job(body: Any) -> JobSpec:
    """Validate a submitted job, or raise Invalid with a JSON pointer to each error."""
    kind = body.get("kind") if isinstance(body, dict) else None
    if isinstance(kind, str) and kind in known():
        # Use the class of the kind: the union would add the kind to the path of each error.
        spec: JobSpec = validated(_adapter(kind), body, f"The {kind} job")
        return spec
    unknown: JobSpec = validated(_adapter(None), body, "The job")
    return unknown
