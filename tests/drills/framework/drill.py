"""A drill: one fault, injected into a running service at a random moment, and what the service promises then."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.drills.framework.scene import Scene

FAULTS = Path(__file__).parents[1] / "faults"
PROMISE = "Nothing acknowledged is lost, nothing happens twice, tagging goes on."

Inject = Callable[["Scene"], None]


@dataclass(frozen=True, slots=True)
class Drill:
    """One row of the table."""

    #: Name of the row: that of the function, and of the scene.
    name: str
    fault: str
    #: Where the fault is injected, and how.
    where: str
    promise: str
    #: An issue of another project that describes the hole, or "".
    rival: str
    #: The service that it is injected into; see `scenes`.
    scene: str
    inject: Inject
    #: Called once before the repetitions.
    prepare: Inject | None = None
    #: A program without which the fault cannot be injected, or "".
    program: str = ""


_known: dict[str, Drill] = {}


def drill(
    *,
    fault: str,
    where: str,
    promise: str = PROMISE,
    rival: str = "",
    scenes: tuple[str, ...] = ("postgresql",),
    prepare: Inject | None = None,
    program: str = "",
) -> Callable[[Inject], Inject]:
    """Register a function as a drill, with one row for each scene.

    The function injects the fault, and returns when it is over. If it is over before the function returns, it calls
    `scene.mark_over()`.
    """

    def register(inject: Inject) -> Inject:
        for scene in scenes:
            name = inject.__name__ if len(scenes) == 1 else f"{inject.__name__}-{scene}"
            assert name not in _known, name
            _known[name] = Drill(name, fault, where, promise, rival, scene, inject, prepare, program)
        return inject

    return register


def known() -> dict[str, Drill]:
    """Return all drills by name; those of one scene follow each other."""
    for folder in sorted(path for path in FAULTS.iterdir() if path.is_dir()):
        for module in pkgutil.iter_modules([str(folder)]):
            importlib.import_module(f"tests.drills.faults.{folder.name}.{module.name}")
    # A scene is kept for all its drills. Those that prepare it come last, since it has to be restored after them.
    scenes = list(dict.fromkeys(each.scene for each in _known.values()))
    return dict(
        sorted(_known.items(), key=lambda item: (scenes.index(item[1].scene), item[1].prepare is not None))
    )
