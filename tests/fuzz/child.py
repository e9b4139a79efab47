"""The process that tries inputs of one target. A crash or a hang ends this process only, and the parent sees the input.

    python -m tests.fuzz.child conll --seconds 30 --seed 7

It begins with the seeds and the kept inputs. An input with an outcome that was not seen before becomes the origin of
further inputs. The last line of its output is a report in JSON.
"""

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tagsmith.core.base.errors import TagsmithError
from tests.fuzz import trial
from tests.fuzz.mutation import Mutator
from tests.fuzz.targets import Target, targets

CORPUS = Path(__file__).parent / "corpus"
#: Attempts to make a failing input smaller.
MAX_CUTS = 200
#: Larger inputs are not kept, unless they fail.
MAX_KEPT_BYTES = 2_000
#: An input with a new outcome is chosen this much more often than an old one.
RECENT = 8


@dataclass
class Run:
    """What was tried, and what was found."""

    inputs: int = 0
    #: The first input of each outcome.
    found: dict[str, bytes] = field(default_factory=dict)
    #: Reasons by the name of the file that has the input.
    failures: dict[str, str] = field(default_factory=dict)


def kept(target: Target) -> list[Path]:
    """The kept inputs of a target."""
    return sorted((CORPUS / target.name).glob("*"))


def first_inputs(target: Target) -> list[bytes]:
    """The seeds, with the first options and with their own, cut and whole."""
    made = target.seeds()
    return [
        bytes([choice, size]) + seed
        for n, seed in enumerate(made)
        for choice, size in ((n, 0xFF), (n + 1, 6))
    ]


def warm(target: Target) -> None:
    """Load everything that a target needs, without limits."""
    for data in first_inputs(target):
        try:
            target.read(*trial.pieces_of(data))
        except TagsmithError:
            continue


def store(target: Target, data: bytes) -> str:
    """Write an input into the corpus; return its name."""
    path = CORPUS / target.name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return f"{target.name}/{path.name}"


def smaller(target: Target, data: bytes, signature: str) -> bytes:
    """Cut parts out of an input while it fails in the same way."""
    size, cuts = len(data) // 2, 0
    while size and cuts < MAX_CUTS:
        begin = 2
        while begin < len(data) and cuts < MAX_CUTS:
            shorter, cuts = data[:begin] + data[begin + size :], cuts + 1
            if trial.tried(target, shorter).signature == signature:
                data = shorter
            else:
                begin += size
        size //= 2
    return data


def fuzz(target: Target, seconds: float, seed: int, note: Callable[[bytes], None]) -> Run:
    """Try inputs for `seconds`. `note` is told every input before it is tried."""
    run, end = Run(), time.monotonic() + seconds
    pending = [*first_inputs(target), *(path.read_bytes() for path in kept(target))]
    origins = list(pending)
    mutator = Mutator(seed, [data[2:] for data in pending])
    while pending or time.monotonic() < end:
        if pending:
            data = pending.pop()
        else:
            recent = mutator.chance.random() < 0.5
            data = mutator.mutated(mutator.chance.choice(origins[-RECENT:] if recent else origins), origins)
        note(data)
        outcome = trial.tried(target, data)
        run.inputs += 1
        if outcome.signature in run.found:
            continue
        run.found[outcome.signature] = data
        origins.append(data)
        if outcome.failure:
            run.failures[store(target, smaller(target, data, outcome.signature))] = outcome.failure
    return run


def keep(target: Target, run: Run, most: int) -> int:
    """Keep the smallest inputs with outcomes that no kept input has; return how many."""
    known = {trial.tried(target, path.read_bytes()).signature for path in kept(target)}
    known |= {trial.tried(target, data).signature for data in first_inputs(target)}
    new = sorted((data for signature, data in run.found.items() if signature not in known), key=len)
    chosen = [data for data in new if len(data) <= MAX_KEPT_BYTES][:most]
    for data in chosen:
        store(target, data)
    return len(chosen)


def replay(names: list[str]) -> list[str]:
    """Try the seeds and the kept inputs of targets; return what failed."""
    failures = []
    for name in names:
        warm(targets()[name])
    trial.limit_memory()
    for name in names:
        target = targets()[name]
        inputs = {f"{name} seed {n}": data for n, data in enumerate(first_inputs(target))}
        inputs |= {f"{name}/{path.name}": path.read_bytes() for path in kept(target)}
        outcomes = {each: trial.tried(target, data) for each, data in inputs.items()}
        failures += [f"{each}: {outcome.failure}" for each, outcome in outcomes.items() if outcome.failure]
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="+", choices=sorted(targets()), metavar="TARGET")
    parser.add_argument("--seconds", type=float, default=0.0, help="0 only tries what is kept")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=int, default=0, help="keep this many inputs with new outcomes")
    parser.add_argument("--current", type=Path, help="the file that has the input that is tried")
    options = parser.parse_args()
    if not options.seconds:
        print(json.dumps({"failures": replay(options.targets)}))
        return
    target = targets()[options.targets[0]]
    warm(target)
    trial.limit_memory()
    current = os.open(options.current or os.devnull, os.O_WRONLY | os.O_CREAT)

    def note(data: bytes) -> None:
        os.pwrite(current, data, 0)
        os.ftruncate(current, len(data)) if options.current else None

    run = fuzz(target, options.seconds, options.seed, note)
    kept_now = keep(target, run, options.keep) if options.keep else 0
    report = {"inputs": run.inputs, "outcomes": len(run.found), "kept": kept_now, "failures": run.failures}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
