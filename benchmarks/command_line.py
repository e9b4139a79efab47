"""`tagsmith tag --local` file to file and `tagsmith train --local`, beside other command lines, alternated in one run.

python -m benchmarks.command_line --data ../shared/data

Tagging: CoNLL-2000's test text, twenty times over, from a file to a file, start-up of each process included. The
others are python-crfsuite with features made in Python, which is how it is used, and `wapiti label` and `crf_test` if
they are on PATH. Training: CoNLL-2000 with CRF++'s template.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import common

COPIES = 20
OUR_TRAINING = "tagsmith train --local (sgd-l1, 30 passes: the default)"
#: CRF++'s own template for this task.
TEMPLATE = "\n".join(
    [f"U0{i}:%x[{i - 2},0]" for i in range(5)]
    + ["U05:%x[-1,0]/%x[0,0]", "U06:%x[0,0]/%x[1,0]"]
    + [f"U1{i}:%x[{i - 2},1]" for i in range(5)]
    + [f"U1{i + 5}:%x[{i - 2},1]/%x[{i - 1},1]" for i in range(4)]
    + [f"U2{i}:%x[{i - 2},1]/%x[{i - 1},1]/%x[{i},1]" for i in range(3)]
    + ["B", ""]
)
#: A whole program, as a user of python-crfsuite writes it.
CRFSUITE = """
import re, sys
import pycrfsuite
LINES = [line for line in open(sys.argv[1]).read().split("\\n") if line[:1] == "U"]
SLOTS = [re.findall(r"%x\\[(-?\\d+),(\\d+)\\]", line) for line in LINES]
SLOTS = [[(int(row), int(column)) for row, column in slots] for slots in SLOTS]
def features(rows):
    made = []
    for t in range(len(rows)):
        attributes = []
        for number, slots in enumerate(SLOTS):
            values = [rows[t + r][c] if 0 <= t + r < len(rows) else "_B%+d" % r for r, c in slots]
            attributes.append("%d:%s" % (number, "/".join(values)))
        made.append(attributes)
    return made
def sentences(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                rows.append(line.split())
            elif rows:
                yield rows
                rows = []
    if rows:
        yield rows
if sys.argv[2] == "train":
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"max_iterations": 50})
    for rows in sentences(sys.argv[4]):
        trainer.append(features(rows), [row[-1] for row in rows])
    trainer.train(sys.argv[3])
else:
    tagger = pycrfsuite.Tagger()
    tagger.open(sys.argv[3])
    with open(sys.argv[5], "w", encoding="utf-8") as out:
        for rows in sentences(sys.argv[4]):
            for row, tag in zip(rows, tagger.tag(features(rows))):
                out.write(" ".join(row) + " " + tag + "\\n")
            out.write("\\n")
"""


class Contenders:
    """The commands, on files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # As on a user's machine: Python keeps the byte code of what it imports.
        self.environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self.tagsmith = str(Path(sys.executable).parent / "tagsmith")
        (folder / "template").write_text(TEMPLATE)
        (folder / "crfsuite.py").write_text(CRFSUITE)

    def run(self, *command: str, out: str | None = None) -> None:
        target = (self.folder / out).open("wb") if out else subprocess.DEVNULL
        try:
            quiet = {"stdout": target, "stderr": subprocess.DEVNULL}
            subprocess.run(command, cwd=self.folder, env=self.environment, check=True, **quiet)  # type: ignore[call-overload]
        finally:
            if out:
                target.close()  # type: ignore[union-attr]  # a file

    def trainings(self) -> dict[str, Callable[[], None]]:
        """Each makes the model that it tags with later. Trainers and stopping differ, so these are no race."""
        found: dict[str, Callable[[], None]] = {
            OUR_TRAINING: lambda: self.run(
                self.tagsmith, "train", "--local", "train.txt", "--template", "template", "--model", "ours"
            ),
            "python-crfsuite, Python features (lbfgs, 50 iterations)": lambda: self.run(
                sys.executable, "crfsuite.py", "template", "train", "crfsuite", "train.txt"
            ),
        }
        if shutil.which("crf_learn"):
            found["crf_learn"] = lambda: self.run("crf_learn", "template", "train.txt", "crfpp")
        if shutil.which("wapiti"):
            found["wapiti train"] = lambda: self.run(
                "wapiti", "train", "-p", "template", "train.txt", "wapiti"
            )
        return found

    def taggings(self) -> dict[str, Callable[[], None]]:
        found: dict[str, Callable[[], None]] = {
            "tagsmith tag --local": lambda: self.run(
                self.tagsmith, "tag", "--local", "ours", "test.txt", "-o", "ours.out"
            ),
            "python-crfsuite, Python features": lambda: self.run(
                sys.executable, "crfsuite.py", "template", "tag", "crfsuite", "test.txt", "crfsuite.out"
            ),
        }
        if shutil.which("crf_test"):
            found["crf_test"] = lambda: self.run("crf_test", "-m", "crfpp", "test.txt", out="crfpp.out")
        if shutil.which("wapiti"):
            found["wapiti label"] = lambda: self.run(
                "wapiti", "label", "-m", "wapiti", "test.txt", "wapiti.out"
            )
        return found

    def accuracy(self, name: str) -> float:
        """Of the tags at the ends of lines, against the column before."""
        rows = [
            line.split() for line in (self.folder / name).read_text(encoding="utf-8").splitlines() if line
        ]
        return round(100 * sum(row[-1] == row[-2] for row in rows) / len(rows), 3)


def measure(data: Path, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        given = Contenders(Path(folder))
        (given.folder / "train.txt").write_bytes(common.read(data / "conll2000" / "train.txt"))
        text = common.read(data / "conll2000" / "test.txt").rstrip(b"\n") + b"\n\n"
        (given.folder / "test.txt").write_bytes(text * COPIES)
        tokens = sum(1 for line in text.splitlines() if line.strip()) * COPIES
        processor: dict[str, list[float]] = {}
        trained = common.alternate({n: _timer(n, f, processor) for n, f in given.trainings().items()}, 1)
        tagged = common.alternate({n: _timer(n, f, processor) for n, f in given.taggings().items()}, rounds)
        return {
            "tokens": tokens,
            "tag": common.summary(tagged, "tagsmith tag --local"),
            # Time of all cores. It depends less on what else the machine does.
            "tag_processor": common.summary({n: processor[n] for n in tagged}, "tagsmith tag --local"),
            "accuracy": {
                "tagsmith": given.accuracy("ours.out"),
                "python-crfsuite": given.accuracy("crfsuite.out"),
            },
            "train": common.summary(trained, OUR_TRAINING),
            "not_on_path": [name for name in ("crf_learn", "crf_test", "wapiti") if not shutil.which(name)],
        }


def _timer(name: str, function: Callable[[], None], processor: dict[str, list[float]]) -> Callable[[], float]:
    """Measure a command. Its processor time is added to `processor`."""

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = common.timed(function)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        processor.setdefault(name, []).append(spent)
        return took

    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = measure(options.data, options.rounds)
    for part in ("tag", "tag_processor", "train"):
        for name, about in found[part].items():
            print(
                f"{part:<14} {name:<56} {about['seconds_median']:8.2f} s  {about['times_ours']:6.2f} times ours"
            )
    print(f"{found['tokens']:,} tokens; accuracy {found['accuracy']}; not on PATH: {found['not_on_path']}")
    print(f"wrote {common.record('command_line', found)}")


if __name__ == "__main__":
    main()
