"""`python -m tagsmith.worker`: start one worker with the settings of the environment."""

import os
import sys

from tagsmith.core.base.errors import Invalid, TagsmithError
from tagsmith.core.service import data_dir, logs
from tagsmith.core.service.settings import Settings


def limit_threads(settings: Settings) -> None:
    """Divide the cores among the workers of this machine. Numba reads these variables when it is imported."""
    cores = len(os.sched_getaffinity(0))
    variables = {
        "NUMBA_NUM_THREADS": str(max(1, cores // max(1, settings.workers))),
        # Unlike OpenMP's layer it survives a fork. It is not thread-safe, but a process runs one job at a time.
        "NUMBA_THREADING_LAYER": "workqueue",
        # Only our own kernels use several threads. The libraries under NumPy would start more threads on top.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def start() -> int:
    """Read the settings and run a worker."""
    try:
        settings = Settings.from_env()
    except Invalid as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    data_dir.keep_files_private()
    logs.configure(settings.logging_level)
    limit_threads(settings)
    from tagsmith.worker.main import main  # noqa: PLC0415  # imports numba, see limit_threads

    try:
        return main(settings)
    except TagsmithError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2


if __name__ == "__main__":
    sys.exit(start())
