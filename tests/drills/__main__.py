"""Break a running service at random moments, over and over, and write what was seen to `docs/reliability.md`.

    python -m tests.drills [--times 20] [--seed 1] [--again] [--list] [ROW ...]

A row that was done as often at this commit with this seed is kept, so a run that was interrupted continues. `--again`
repeats rows. A repetition is given by the row, the seed and its number: `--only 7` runs number 7 and writes nothing.
"""

import argparse
import contextlib
import dataclasses
import sys
import time
import traceback
from collections.abc import Mapping, Sequence

from tests.drills.checker import check
from tests.drills.framework import results
from tests.drills.framework.drill import Drill, known
from tests.drills.framework.rehearsal import Outcome, rehearse, seed_of
from tests.drills.framework.results import Row
from tests.drills.framework.scene import Scene
from tests.drills.framework.scenes import missing, running
from tests.drills.history import History

#: A repetition that ends with an error counts as one loss.
BROKEN = Outcome(0, 1, 0, 0, 0.0, 0.0, hit=True, findings="", is_broken=True)


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    drills = known()
    if options.list:
        print("\n".join(drills))
        return 0
    unknown = set(options.rows) - set(drills)
    if unknown:
        print(f"There is no row {', '.join(sorted(unknown))}. `--list` shows all.", file=sys.stderr)
        return 2
    rows, commit = results.read(), results.commit()
    with contextlib.ExitStack() as stack:
        broken = _run_all(_Runner(stack), options, drills, rows, commit)
    print(f"{len(broken)} rows are not clean: {', '.join(broken)}" if broken else "all rows are clean")
    return bool(broken)


def _run_all(
    runner: "_Runner",
    options: argparse.Namespace,
    drills: Mapping[str, Drill],
    rows: dict[str, Row],
    commit: str,
) -> list[str]:
    """Run what is not done, and return the rows that are not clean."""
    broken = []
    for name in options.rows or drills:
        done = rows.get(name)
        if (
            done is not None
            and not options.again
            and (done.commit, done.seed) == (commit, options.seed)
            and len(done.outcomes) >= options.times
        ):
            print(f"{name}: done before", flush=True)
            broken += [] if done.is_clean else [name]
            continue
        if reason := missing(drills[name]):
            print(f"{name}: not possible here: {reason}", flush=True)
            continue
        row = runner.run(drills[name], commit, options.seed, options.only or range(1, options.times + 1))
        broken += [] if row.is_clean else [name]
        if not options.only:
            rows[name] = row
            results.write(rows)
            results.write_page(drills, rows)
    return broken


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.drills")
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*", default=[], help="numbers of repetitions")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args(arguments)


class _Runner:
    """Runs drills one after the other. A scene runs on until a drill needs another one, or a repetition broke it."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._name = ""

    def run(self, drill: Drill, commit: str, seed: int, numbers: Sequence[int]) -> Row:
        """Run the repetitions with these numbers."""
        started_at = time.monotonic()
        outcomes: list[Outcome] = []
        histories, findings = History(), ""
        for number in numbers:
            scene = self._scene_of(drill)
            outcome = _repeat(drill, scene, seed_of(drill.name, seed, number), number, histories)
            outcomes.append(outcome)
            if outcome.is_broken:
                self._end_scene()
                histories = History()
        if self._name and not scene.fresh:
            found = check(scene.url, histories)
            findings = str(found) if found else ""
        row = Row(commit, seed, outcomes, findings)
        state = "clean" if row.is_clean else f"NOT CLEAN {findings}"
        print(f"{drill.name}: {state}, {time.monotonic() - started_at:.0f} s", flush=True)
        return row

    def _scene_of(self, drill: Drill) -> Scene:
        if self._name != drill.scene:
            self._end_scene()
            self._scene = self._stack.enter_context(running(drill.scene))
            self._name = drill.scene
        return self._scene

    def _end_scene(self) -> None:
        self._stack.close()
        self._name = ""


def _repeat(drill: Drill, scene: Scene, seed: int, number: int, histories: History) -> Outcome:
    started_at = time.monotonic()
    try:
        outcome = rehearse(drill, scene, seed, histories)
    except Exception as error:  # noqa: BLE001  # the other repetitions still count
        traceback.print_exc()
        outcome = dataclasses.replace(BROKEN, seed=seed, findings=f"{type(error).__name__}: {error}")
    print(
        f"{drill.name} {number} (seed {seed}): lost {outcome.lost}, doubled {outcome.doubled}, "
        f"mixed {outcome.mixed}, unanswered {outcome.unanswered_s} s, recovery {outcome.recovery_s} s"
        f"{'' if outcome.hit else ', the job had ended before'}, {time.monotonic() - started_at:.1f} s in all"
        f"{': ' + outcome.findings if outcome.findings else ''}",
        flush=True,
    )
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
