"""Run as a module: trains as each spec on the command line says; prints what each took at most and what was told."""

import json
import re
import sys
from pathlib import Path

from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.jobs.kinds.train import TrainSpec
from tests.training import train

PROC = Path("/proc/self")


def status(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", (PROC / "status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) << 10


def peak(spec: TrainSpec, sentences: int) -> tuple[int, str]:
    """Bytes that training takes at most beyond what the process and the compiled corpus hold."""
    run = train(spec, read_conll(generate("references", sentences, 1), max_line_bytes=1 << 16), None)
    next(run)
    told = next(run).message
    before = status("VmRSS")
    (PROC / "clear_refs").write_text("5")  # the high-water mark starts anew
    for _ in run:
        pass
    return status("VmHWM") - before, told


if __name__ == "__main__":
    for text in sys.argv[1:]:
        spec = TrainSpec.model_validate_json(text)
        peak(spec, 30)  # loads the kernels
        measured, told = peak(spec, 2500)
        print(json.dumps([measured, told]))
