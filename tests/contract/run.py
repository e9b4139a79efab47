"""Run schemathesis over the whole OpenAPI document of a server, with every check."""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from tests.app.keys import id_of
from tests.contract import hooks
from tests.contract.seeds import Seeds

ROOT = Path(__file__).resolve().parents[2]
#: How often a request names something that there is.
PROBABILITY = 0.7

#: What the parameters and fields of all routes name.
PLACES = {
    "path.corpus_id": "corpora",
    "path.lexicon_id": "lexicons",
    "path.job_id": "jobs",
    "path.key_id": "keys",
    "path.name": "models",
    "path.alias": "aliases",
    "path.number": "versions",
    "query.base": "versions",
    "query.head": "versions",
    "body.corpus": "corpora",
    "body.version": "versions",
    "body.model": "models",
}
#: Which jobs those routes want that do nothing for others.
JOBS = {
    "/jobs/{job_id}/output": ("tag",),
    "/jobs/{job_id}/table.csv": ("evaluate", "compare"),
    "/jobs/{job_id}/plot.svg": ("train", "compare"),
    "/jobs/{job_id}/pause": ("waiting",),
    "/jobs/{job_id}/resume": ("paused",),
    "/jobs/{job_id}/retry": ("cancelled",),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    code: int
    #: Answers by operation and status.
    answers: Mapping[str, Mapping[str, int]]

    @property
    def never_accepted(self) -> list[str]:
        """Operations of which no request succeeded: what they do was not tested."""
        return [name for name, counts in self.answers.items() if not any(s.startswith("2") for s in counts)]

    @property
    def requests(self) -> int:
        return sum(sum(counts.values()) for counts in self.answers.values())


def run(url: str, seeds: Seeds, folder: Path, arguments: Sequence[str], key: str | None = None) -> Outcome:
    """Run the checks. Schemathesis says on standard output what it found."""
    config, tally, model = folder / "schemathesis.toml", folder / "tally.json", folder / "artifact"
    config.write_text(_config(seeds, key))
    model.write_bytes(seeds.artifact)
    program = str(Path(sys.executable).with_name("schemathesis"))
    location = f"{url}/openapi.json"
    command = [program, "--config-file", str(config), "run", location, "--checks", "all", *arguments]
    environment = {**os.environ, hooks.TALLY: str(tally), hooks.ARTIFACT: str(model), "PYTHONPATH": str(ROOT)}
    if key is not None:
        environment[hooks.KEY_ID] = id_of(key)
    code = subprocess.run(command, check=False, cwd=folder, env=environment).returncode
    answers: dict[str, dict[str, int]] = defaultdict(dict)
    for name, count in orjson.loads(tally.read_bytes()).items():
        operation, _, status = name.rpartition(" ")
        answers[operation][status] = count
    return Outcome(code, answers)


def _config(seeds: Seeds, key: str | None) -> str:
    """The configuration of schemathesis: what requests can name, and the key they show."""
    known: dict[str, Any] = {
        "corpora": seeds.corpora,
        "lexicons": seeds.lexicons,
        "jobs": list(chain.from_iterable(seeds.jobs.values())),
        "keys": seeds.keys,
        "models": seeds.models,
        "aliases": seeds.aliases,
        "versions": seeds.versions,
        **{f"jobs-{state}": ids for state, ids in seeds.jobs.items()},
    }
    lines = ['hooks = "tests.contract.hooks"']
    if key is not None:
        lines += ["[auth.openapi.key]", f"bearer = {_toml(key)}"]
    for name, values in known.items():
        if values:
            lines += [f"[dictionaries.{name}]", f"values = {_toml(values)}"]
    lines.append("[parameters]")
    lines += [_binding(place, name) for place, name in PLACES.items() if known[name]]
    for path, states in JOBS.items():
        for name in (f"jobs-{state}" for state in states):
            if name in known:
                lines += ["[[operations]]", f"include-path = {_toml(path)}", "[operations.parameters]"]
                lines.append(_binding("path.job_id", name))
                break
    return "\n".join(lines) + "\n"


def _binding(place: str, dictionary: str) -> str:
    return f'"{place}" = {{ dictionary = "{dictionary}", probability = {PROBABILITY} }}'


def _toml(value: Any) -> str:
    return orjson.dumps(value).decode()
