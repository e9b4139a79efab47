"""Each drill once. `make drills` runs them often, and in every scene."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.drills.framework import scenes
from tests.drills.framework.drill import Drill, known
from tests.drills.framework.rehearsal import rehearse, seed_of
from tests.drills.framework.scene import Scene

#: One row of each drill: that of its first scene.
ROWS = {each.inject: each for each in reversed(known().values())}
DRILLS = [each for each in known().values() if ROWS[each.inject] is each]
#: Any other shows other moments.
SEED = 1

RunningScene = Callable[[str], Scene]


@pytest.fixture(scope="module")
def scene_of() -> Iterator[RunningScene]:
    """Give a running scene by name; it runs until another one is asked for."""
    with contextlib.ExitStack() as stack:
        started: dict[str, Scene] = {}

        def scene(name: str) -> Scene:
            if name not in started:
                stack.close()
                started.clear()
                started[name] = stack.enter_context(scenes.running(name, quick=True))
            return started[name]

        yield scene


@pytest.mark.parametrize("drill", DRILLS, ids=lambda each: each.name)
def test_nothing_is_lost_doubled_or_mixed(drill: Drill, scene_of: RunningScene) -> None:
    if missing := scenes.missing(drill):
        pytest.skip(missing)
    outcome = rehearse(drill, scene_of(drill.scene), seed_of(drill.name, SEED, 1))
    assert outcome.is_clean, outcome.findings
