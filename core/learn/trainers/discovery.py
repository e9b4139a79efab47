"""Discover the trainers: every module of a family package that has the name of the `kind` of a spec it defines."""

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from tagsmith.core.learn.trainers.base import TrainerSpec


def specs_in(package: ModuleType) -> list[type[TrainerSpec]]:
    """Return the specs of a family: first those in its `ORDER`, then the others by name."""
    found = {}
    for each in pkgutil.iter_modules(package.__path__):
        spec = _spec_of(import_module(f"{package.__name__}.{each.name}"))
        if spec is not None:
            found[str(spec.model_fields["kind"].default)] = spec
    order: Sequence[str] = package.ORDER
    return [found.pop(kind) for kind in order] + [found[kind] for kind in sorted(found)]


def _spec_of(module: ModuleType) -> type[TrainerSpec] | None:
    """Return the spec whose kind is the name of the module."""
    kind = module.__name__.rpartition(".")[2].replace("_", "-")
    own = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
    specs = [each for each in own if isinstance(each, type) and issubclass(each, TrainerSpec)]
    return next((each for each in specs if each.model_fields["kind"].default == kind), None)
