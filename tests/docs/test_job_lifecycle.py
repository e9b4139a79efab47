"""The picture of a job's states shows the transitions that the code allows."""

import re
from pathlib import Path

from tagsmith.core.store.states import HELD, TERMINAL, TRANSITIONS, State

PAGE = (Path(__file__).parents[2] / "docs" / "job-lifecycle.md").read_text(encoding="utf-8")


def test_the_picture_has_every_transition_and_no_other() -> None:
    (picture,) = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", PAGE, re.DOTALL)
    shown = {
        (verb, source, target)
        for source, target, verbs in re.findall(r"^ +(\w+) --> (\w+): (.+)$", picture, re.MULTILINE)
        for verb in verbs.split(", ")
    }
    assert shown == {
        (transition.value, source.value, target.value)
        for transition, targets in TRANSITIONS.items()
        for source, target in targets.items()
    }
    assert set(re.findall(r"(\w+) --> \[\*\]", picture)) == {state.value for state in TERMINAL}


def test_the_table_says_which_states_have_a_lease() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| .+ \| (yes|no) \|$", PAGE, re.MULTILINE)
    held = {name: lease == "yes" for names, lease in rows for name in re.findall(r"`(\w+)`", names)}
    assert held == {state.value: state in HELD for state in State}
