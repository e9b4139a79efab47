"""Whether imported models tag like the programs that trained them: CRFsuite on the test part of CoNLL-2000.

    python -m benchmarks.imports --data ../shared/data

python-crfsuite trains on the training part with CRF++'s chunking templates. Its model file is imported, and both tag
every sentence of the test part with the same attributes. The exit status is 1 if any sentence differs.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import pycrfsuite

from benchmarks import common, crfsuite
from tagsmith.core.model.importing import import_model
from tagsmith.core.model.tagger import Tagger


def differing(train: bytes, test: bytes, folder: Path, iterations: int) -> tuple[int, int]:
    """Return the number of sentences, and of those tagged differently by python-crfsuite."""
    parsed = crfsuite.templates()
    sentences = crfsuite.sentences(train)
    crfsuite.trained(
        [crfsuite.expand(sentence, parsed) for sentence in sentences],
        [[row[-1] for row in sentence] for sentence in sentences],
        folder / "theirs",
        "lbfgs",
        {"c2": 1.0, "max_iterations": iterations},
    )
    peer = pycrfsuite.Tagger()
    peer.open(str(folder / "theirs"))
    found = import_model(folder / "theirs", folder / "ours")
    inputs = [crfsuite.expand(sentence, parsed) for sentence in crfsuite.sentences(test)]
    ours = Tagger(found.model).tag([[dict.fromkeys(names, 1.0) for names in each] for each in inputs])
    return len(inputs), sum(peer.tag(each) != tags for each, tags in zip(inputs, ours, strict=True))


def main() -> None:
    """Train, import, tag, and print how many sentences differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the corpora")
    parser.add_argument("--iterations", type=int, default=100)
    given = parser.parse_args()
    train, test = (common.read(given.data / "conll2000" / f"{part}.txt") for part in ("train", "test"))
    with tempfile.TemporaryDirectory() as folder:
        count, wrong = differing(train, test, Path(folder), given.iterations)
    print(f"{count} sentences, {wrong} tagged otherwise than by python-crfsuite")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
