"""The same targets, guided by coverage, for a longer search than `make fuzz`:

    pip install atheris && python -m tests.fuzz.guided conll --seconds 300

Kernels run as plain Python (`NUMBA_DISABLE_JIT`), so that the fuzzer sees their branches and their bounds are checked.
Models are left out: the integers of their kernels overflow on purpose, which Python does not. The first input that
fails ends the run and is kept. Atheris is not in the requirements: it is large and not available for every platform.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

MAX_BYTES = 2_048


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.target.startswith("model"):
        parser.error("models cannot be fuzzed in this way; use make fuzz")
    os.environ["NUMBA_DISABLE_JIT"] = "1"

    import atheris

    with atheris.instrument_imports(include=["tagsmith.core", "tagsmith.app.features", "tagsmith.app.http"]):
        from tests.fuzz import child, trial
        from tests.fuzz.targets import targets

    target = targets()[options.target]

    def one(data: bytes) -> None:
        outcome = trial.tried(target, data)
        if outcome.failure:
            raise AssertionError(f"{child.store(target, data)}: {outcome.failure}")

    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(
            [*child.first_inputs(target), *(p.read_bytes() for p in child.kept(target))]
        ):
            (Path(folder) / str(number)).write_bytes(data)
        limits = [f"-max_total_time={options.seconds}", f"-seed={options.seed}", f"-max_len={MAX_BYTES}"]
        atheris.Setup(
            [sys.argv[0], folder, *limits, f"-artifact_prefix={folder}/", "-print_final_stats=1"], one
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
