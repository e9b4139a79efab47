"""CoNLL-2000 through the service: upload, train twice with one seed, compare the bytes, score on the test set.

python -m benchmarks.service --data ../shared/data
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import common
from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.service.settings import Settings

SPEC: dict[str, Any] = {
    "model": "chunker",
    "features": {"preset": "chunking"},
    "trainer": {"kind": "sgd-l1", "l1": 0.5, "passes": 30, "schedule": {"kind": "exponential"}},
    "seed": 1,
}


def trained(client: Client, corpus: str, dev: str) -> dict[str, Any]:
    """Run one job to its end and return its result."""
    began = time.perf_counter()
    job = client.wait(client.train({**SPEC, "corpus": corpus, "dev": {"corpus": dev}}).id)
    if job.state != "succeeded" or job.result is None:
        raise SystemExit(f"the job {job.state}: {job.error}")
    version = client.version("chunker", job.result["version"])
    return {
        "sha256": version.sha256,
        "test_f1": round(version.metrics["dev"]["f1"], 2),
        "active_features": version.active_features,
        "objective": version.objective,
        "train_seconds": version.train_seconds,
        "job_seconds": round(time.perf_counter() - began, 2),
        "size_bytes": version.size_bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.from_env({}, {"port": 0, "data_dir": Path(folder) / "data"})
        stack = BackgroundStack(settings)
        with stack, Client(stack.url) as client:
            train, test = (
                client.upload(common.read(options.data / "conll2000" / f"{part}.txt"), name=part).id
                for part in ("train", "test")
            )
            runs = [trained(client, train, test) for _ in range(2)]
    result = {"runs": runs, "same_bytes": runs[0]["sha256"] == runs[1]["sha256"]}
    print(common.record("service", result).read_text())


if __name__ == "__main__":
    main()
