"""Run schemathesis over the whole OpenAPI document of a server, with every check."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import orjson

from tests.app.keys import id_of
from tests.contract import hooks
from tests.contract.hooks import Tally
from tests.contract.seeds import KEPT, VERSIONS, Seeds

ROOT = Path(__file__).resolve().parents[2]
#: Probability that a request names something that exists.
PROBABILITY = 0.7

#: The kind of thing that parameters and fields of all routes name.
NAMED = {
    "path.corpus_id": "corpora",
    "path.lexicon_id": "lexicons",
    "path.job_id": "jobs",
    "path.key_id": "keys",
    "path.name": "models",
    "path.alias": "aliases",
    "path.number": "versions",
    "query.base": "versions",
    "query.head": "versions",
    "body.corpus": "kept",
    "body.version": "versions",
    "body.model": "models",
}
#: The jobs for routes that accept only jobs in certain states or of certain kinds.
JOBS = {
    "/jobs/{job_id}/output": ("tag", "rank"),
    "/jobs/{job_id}/table.csv": ("evaluate", "compare"),
    "/jobs/{job_id}/plot.svg": ("train", "compare"),
    "/jobs/{job_id}/cancel": ("unwanted",),
    "/jobs/{job_id}/pause": ("waiting",),
    "/jobs/{job_id}/resume": ("paused",),
    "/jobs/{job_id}/retry": ("cancelled",),
}
#: Things that can be deleted, because nothing needs them.
DELETED = {
    "DELETE /corpora/{corpus_id}": ("path.corpus_id", "spare-corpora"),
    "DELETE /lexicons/{lexicon_id}": ("path.lexicon_id", "spare-lexicons"),
    "DELETE /models/{name}/versions/{number}": ("path.number", "spare-versions"),
    "DELETE /models/{name}": ("path.name", "spare-models"),
    "DELETE /jobs/{job_id}": ("path.job_id", "jobs-spare"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    code: int
    #: By operation, including those without a request.
    tallies: Mapping[str, Tally]

    @property
    def never_requested(self) -> list[str]:
        """Operations without a request."""
        return [name for name, tally in self.tallies.items() if not tally.responses]

    @property
    def never_accepted(self) -> list[str]:
        """Operations without a successful request, which are therefore not tested."""
        return [name for name in self.tallies if self.accepted(name) == 0]

    def accepted(self, name: str) -> int:
        """Return the number of successful requests of an operation."""
        responses = self.tallies[name].responses
        return sum(count for status, count in responses.items() if status.startswith("2"))

    @property
    def requests(self) -> int:
        return sum(tally.responses.total() for tally in self.tallies.values())

    def report(self) -> str:
        """Return a table of the requests by operation, the one with the most time first."""
        lines = [f"{'operation':<56} {'requests':>8} {'accepted':>8} {'waited':>8} {'spent':>8}"]
        for name, tally in sorted(self.tallies.items(), key=lambda item: -item[1].spent_s):
            counts = f"{tally.responses.total():>8,} {self.accepted(name):>8,}"
            lines.append(f"{name:<56} {counts} {tally.waited_s:>6.1f} s {tally.spent_s:>6.1f} s")
        return "\n".join(lines)


def run(url: str, seeds: Seeds, folder: Path, arguments: Sequence[str], key: str | None = None) -> Outcome:
    """Run the checks. Schemathesis says on standard output what it found."""
    config, tally = folder / "schemathesis.toml", folder / "tally.json"
    model, names = folder / "artifact", folder / "names.json"
    config.write_text(_config(seeds, key))
    model.write_bytes(seeds.artifact)
    ids = {"crp": seeds.corpora[:KEPT], "lex": seeds.lexicons[:KEPT]}
    known = {"ids": ids, "models": seeds.models, "references": seeds.references}
    names.write_bytes(orjson.dumps(known))
    program = str(Path(sys.executable).with_name("schemathesis"))
    location = f"{url}/openapi.json"
    command = [program, "--config-file", str(config), "run", location, "--checks", "all", *arguments]
    given = {hooks.TALLY: tally, hooks.ARTIFACT: model, hooks.NAMES: names, "PYTHONPATH": ROOT}
    environment = os.environ | {name: str(path) for name, path in given.items()}
    if key is not None:
        environment[hooks.KEY_ID] = id_of(key)
    code = subprocess.run(command, check=False, cwd=folder, env=environment).returncode
    paths: dict[str, Any] = httpx.get(location).json()["paths"]
    operations = [f"{method.upper()} {path}" for path, item in paths.items() for method in item]
    counted = {name: _tally(**told) for name, told in orjson.loads(tally.read_bytes()).items()}
    return Outcome(code, {name: counted.pop(name, Tally()) for name in operations} | counted)


def _tally(responses: dict[str, int], waited_s: float, spent_s: float) -> Tally:
    return Tally(Counter(responses), waited_s, spent_s)


def _config(seeds: Seeds, key: str | None) -> str:
    """The configuration of schemathesis: what requests can name, and the key they show."""
    known: dict[str, Any] = {
        "corpora": seeds.corpora,
        "kept": seeds.corpora[:KEPT],
        "lexicons": seeds.lexicons,
        "jobs": list(chain.from_iterable(seeds.jobs.values())),
        "keys": seeds.keys,
        "models": seeds.models,
        "aliases": seeds.aliases,
        "versions": seeds.versions,
        "spare-corpora": seeds.corpora[KEPT:],
        "spare-lexicons": seeds.lexicons[KEPT:],
        "spare-versions": seeds.versions[VERSIONS:],
        "spare-models": seeds.spare_models,
        **{f"jobs-{state}": ids for state, ids in seeds.jobs.items()},
    }
    lines = ['hooks = "tests.contract.hooks"']
    if key is not None:
        lines += ["[auth.openapi.key]", f"bearer = {_toml(key)}"]
    for name, values in known.items():
        if values:
            lines += [f"[dictionaries.{name}]", f"values = {_toml(values)}"]
    lines.append("[parameters]")
    lines += [_binding(place, name) for place, name in NAMED.items() if known[name]]
    for operation, (place, name) in DELETED.items():
        lines += ["[[operations]]", f"include-name = {_toml(operation)}", "[operations.parameters]"]
        lines.append(_binding(place, name))
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
