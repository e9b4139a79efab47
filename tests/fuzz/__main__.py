"""Fuzz everything that reads what users send: `make fuzz ARGS="--seconds 600 --seed 7"`.

First the readers, each in a process with limits of memory and time: corpus formats, compression, archives, lexicons,
templates, regular expressions, specs, model files of this and of other programs. Then the requests: every operation of
the OpenAPI document, on both databases, with keys and without (`python -m tests.contract`).

An input must be read, or refused with an error of this project. An input that fails is written to `tests/fuzz/corpus`,
and every later test run tries it again.
"""

import argparse
import json
import secrets
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import child
from tests.fuzz.targets import targets

#: A child that takes this much longer than it was given hangs where no signal reaches it.
GRACE_S = 120.0
LAST_LINES = 3_000


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """The outcome of a target."""

    inputs: int
    outcomes: int
    kept: int
    #: Reasons by the name of the kept input.
    failures: dict[str, str]


def fuzzed(name: str, seconds: float, seed: int, keep: int) -> Fuzzed:
    """Fuzz one target in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        current = Path(folder) / "current"
        arguments = [name, "--seconds", f"{seconds}", "--seed", f"{seed}", "--keep", f"{keep}"]
        command = [sys.executable, "-m", "tests.fuzz.child", *arguments, "--current", str(current)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds + GRACE_S, check=False
            )
        except subprocess.TimeoutExpired:
            return _ended(name, current, f"It hung, and did not end {GRACE_S:g} s later.")
        if done.returncode:
            return _ended(name, current, f"Exit code {done.returncode}. {done.stderr[-LAST_LINES:]}")
    return Fuzzed(**json.loads(done.stdout.splitlines()[-1]))


def _ended(name: str, current: Path, reason: str) -> Fuzzed:
    """A process that did not end by itself: the input it was trying is the failure."""
    data = current.read_bytes() if current.exists() else b""
    stored = child.store(targets()[name], data) if data else f"{name}, before the first input"
    return Fuzzed(0, 0, 0, {stored: reason})


def readers(options: argparse.Namespace) -> list[str]:
    """Fuzz the readers; return what failed."""
    names = [options.target] if options.target else list(targets())
    failures: list[str] = []
    for name in names:
        found = fuzzed(name, options.seconds / len(names), options.seed, options.keep)
        said = f"{found.inputs:,} inputs, {found.outcomes} outcomes, {found.kept} kept"
        print(f"{name}: {said}, {len(found.failures)} failures", flush=True)
        failures += [f"{place}: {reason}" for place, reason in found.failures.items()]
    return failures


def requests(options: argparse.Namespace) -> list[str]:
    """Fuzz the routes; return what failed."""
    command = [sys.executable, "-m", "tests.contract", "--examples", str(options.examples)]
    for name in ("database", "keys"):
        if getattr(options, name):
            command += [f"--{name}", getattr(options, name)]
    command += ["--", "--seed", str(options.seed)]
    done = subprocess.run(command, check=False)
    return ["requests: see above"] if done.returncode else []


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="for all readers together (600)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="default: at random")
    parser.add_argument("--target", choices=list(targets()), help="this reader only")
    parser.add_argument("--only", choices=("readers", "requests"), help="both if not given")
    parser.add_argument("--keep", type=int, default=0, help="inputs with new outcomes to keep per reader (0)")
    parser.add_argument("--examples", type=int, default=200, help="random requests per route (200)")
    parser.add_argument("--database", choices=("postgres", "sqlite"), help="for requests; both if not given")
    parser.add_argument("--keys", choices=("on", "off"), help="for requests; both if not given")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    failures = [] if options.only == "requests" else readers(options)
    if options.only != "readers" and not options.target:
        failures += requests(options)
    print(*failures, sep="\n\n")
    print(f"seed {options.seed}: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
