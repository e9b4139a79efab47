"""A runner that counts: real work for a worker without the cost of training. Run as a module, it is a worker."""

import logging
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.jobs.resources import JobResources
from tagsmith.core.jobs.runner_interface import JobRun
from tagsmith.core.registry import aliases, models
from tagsmith.core.service import logs
from tagsmith.core.service.settings import Settings


@dataclass(frozen=True)
class Counted:
    number: int
    passes: int
    pass_done: bool = True
    checkpoint = None

    @property
    def event(self) -> str | None:
        return "pass" if self.pass_done else None

    @property
    def message(self) -> str:
        return f"pass {self.number} of {self.passes}" if self.pass_done else ""

    def as_dict(self) -> dict[str, Any]:
        return {"pass": self.number, "passes": self.passes, "fraction": self.number / self.passes}


@dataclass(frozen=True)
class CountOutcome:
    job: JobRow

    def store(self, conn: Connection) -> dict[str, Any]:
        new = models.NewVersion(
            objective=1.0,
            active_features=1,
            train_seconds=0.0,
            metrics={},
            trainer={},
            spec=self.job.spec,
            corpus=None,
            seed=1,
            code_version="test",
            job_id=self.job.id,
        )
        assert self.job.model is not None
        made = models.publish(conn, self.job.model, new, [b"counted ", b"to the end"])
        aliases.move(conn, self.job.model, "champion", made.version)
        return {"version": made.version}


def count(resources: JobResources) -> JobRun:
    """Make `passes` passes of `pass_s` seconds, each in `slices` yields.

    `fail` names an error to raise after pass 2. `hold_until` and `deaf_until` name a file: after pass 1, no other pass
    is made until it is there. A job that is deaf does not even yield.
    """
    spec = resources.job.spec
    passes, slices = int(spec["passes"]), int(spec.get("slices", 1))
    assert resources.scratch.is_dir()
    for number in range(1, passes + 1):
        for part in range(1, slices + 1):
            time.sleep(spec["pass_s"] / slices)
            yield Counted(number, passes, pass_done=part == slices)
        if number == 1 and "hold_until" in spec:
            while not Path(spec["hold_until"]).exists():
                time.sleep(0.02)
                yield None
        if number == 1 and "deaf_until" in spec:
            logging.getLogger(__name__).info("deaf from now on")
            while not Path(spec["deaf_until"]).exists():
                time.sleep(0.02)
        if number == 2 and spec.get("fail") == "invalid":
            raise Invalid("pass 2 is no good", [Fault("bad label", line=7)], code="bad_pass")
        if number == 2 and spec.get("fail") == "defect":
            raise RuntimeError("secret inner detail")
    return CountOutcome(resources.job)


if __name__ == "__main__":
    from tagsmith.worker.main import main

    settings = Settings.from_env()
    logs.configure(settings.logging_level)
    sys.exit(main(settings, {"train": count}))
