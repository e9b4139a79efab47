"""Run as a module: warms up as a worker does, then trains in every way, and prints what was compiled only then.

And what was compiled twice, for arrays that may be written and for arrays that may not.
"""

import gc
import json
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from numba.core.dispatcher import Dispatcher

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.crfsuite import read_crfsuite
from tagsmith.core.corpus.formats.segmented import read_segmented
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.features.lexicon.lexicon import Lexicon
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.learn.run.loop import Progress
from tagsmith.core.model import file
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline import warm
from tagsmith.core.pipeline.train import TrainResult
from tests.training import train

TRAINERS: list[dict[str, Any]] = [
    {"kind": "sgd-l1", "passes": 2},
    {"kind": "sgd-l1", "passes": 2, "penalty": "clipping", "schedule": {"kind": "inverse"}},
    {"kind": "sgd-l1", "passes": 2, "penalty": "naive", "batch": 3},
    {"kind": "sgd-l1", "passes": 2, "line_search": "heuristic", "schedule": {"eta0": 0.5}},
    {"kind": "sgd", "passes": 2, "schedule": {"kind": "bottou"}},
    {"kind": "asgd", "passes": 2},
    # To the last digit, which takes float64.
    {"kind": "lbfgs", "passes": 400, "tolerance": 0.0},
    {"kind": "owlqn", "passes": 15, "l2": 0.1},
    {"kind": "two-stage", "passes": 8},
    {"kind": "adf", "passes": 2},
    {"kind": "madf", "passes": 2, "batch": 2},
    {"kind": "perceptron", "passes": 2},
    {"kind": "averaged-perceptron", "passes": 2},
    {"kind": "pa", "passes": 2},
    {"kind": "mira", "passes": 2},
    {"kind": "dca", "passes": 2},
    {"kind": "dca", "passes": 2, "loss": "svm"},
    {"kind": "cw", "passes": 2},
    {"kind": "arow", "passes": 2},
    {"kind": "prox-grad", "passes": 2, "groups": "sparse-group"},
    {"kind": "prox-grad", "passes": 2, "budget": 4, "loss": "svm"},
    {"kind": "prox-grad", "passes": 2, "budget": 40, "groups": "label", "loss": "perceptron"},
    {"kind": "sparseptron", "passes": 2, "budget": 4, "refit": {"kind": "mira", "passes": 1}},
    {"kind": "sparseptron", "passes": 2, "groups": "lasso", "refit": {"kind": "sgd", "passes": 1}},
]


#: Features that take kernels of their own.
MATCHED: list[dict[str, Any]] = [
    {"preset": "segmentation"},
    {
        "templates": "U0:%x[0,forward]\nU1:%x[0,backward]\nU2:%x[0,cluster]\nU3:%x[0,text]",
        "derived": {
            "forward": {"kind": "lexicon", "lexicon": "lex_" + "a" * 40},
            "backward": {"kind": "lexicon", "lexicon": "lex_" + "a" * 40, "match": "backward"},
            "cluster": {"kind": "cluster", "lexicon": "lex_" + "b" * 40},
            "text": {"kind": "text", "lexicon": "lex_" + "c" * 40, "measure": "right-variety"},
        },
    },
]
LEXICONS = {
    "lex_" + "a" * 40: Lexicon("typed", ("我 们",), ("X",)),
    "lex_" + "b" * 40: Lexicon("clusters", ("我",), ("01",)),
    "lex_" + "c" * 40: Lexicon("text", ("我们去", "我们去"), ()),
}
SEGMENTED = "我们 在 上海 工作\n他们 在 北京 工作\n我们 去 上海\n他们 去 北京\n"
BAGS = b"A\tx\ty:2\nB\tz\n\nA\tx\n"
PERCEPTRON = {"kind": "averaged-perceptron", "passes": 2}


def compiled() -> set[str]:
    """Every kernel of ours with the types it was compiled for. Those that only other kernels call have none."""
    return {
        f"{each.py_func.__module__}.{each.py_func.__name__}{signature}"
        for each in gc.get_objects()
        if isinstance(each, Dispatcher) and each.py_func.__module__.startswith("tagsmith.core.")
        for signature in each.signatures
    }


def twice(kernels: set[str]) -> list[str]:
    """Those that were compiled more than once for the same types, but for what may be written."""
    alike = (re.sub(r"readonly |(True|False), aligned", "", each) for each in kernels)
    return [each for each, times in Counter(alike).items() if times > 1]


def run(spec: TrainSpec, folder: Path, **start: Any) -> TrainResult:
    corpus = read_conll(generate("references", 60, 3), max_line_bytes=1 << 16)

    def keep(step: Progress) -> None:
        if step.checkpoint is not None and step.pass_number == 1:
            step.checkpoint(folder / "checkpoint")

    return finished(train(spec, corpus, None, **start), keep)


def tag(corpus: Corpus, features: dict[str, Any], sentence: Any, path: Path) -> None:
    """Train with features, and tag from the file."""
    body = {"kind": "train", "model": "m", "corpus": "crp_a", "features": features, "trainer": PERCEPTRON}
    result = finished(train(TrainSpec.model_validate(body), corpus, None, lexicons=LEXICONS))
    file.save(result.model, path)
    Tagger.open(path).tag([sentence])


if __name__ == "__main__":
    warm.training()
    before = compiled()
    with TemporaryDirectory() as name:
        for features in MATCHED:
            text = read_segmented([SEGMENTED.encode()], max_line_bytes=1 << 16)
            tag(text, features, ["我", "们", "去"], Path(name) / "model")
        tag(read_crfsuite([BAGS], max_line_bytes=100), {}, [{"x": 1.0, "q": 2.0}], Path(name) / "model")
        for trainer in TRAINERS:
            for pairs in ("all", "seen"):
                batched = trainer["kind"] in ("lbfgs", "owlqn", "two-stage")
                spec = TrainSpec.model_validate(
                    {
                        "kind": "train",
                        "model": "m",
                        "corpus": "crp_a",
                        "trainer": trainer,
                        "features": {"preset": "chunking", "pairs": pairs},
                        "dev": {"fraction": 0.2},
                        "stop": {"patience": 400},
                        "objective": "exact",
                        "threads": 2 if batched else 1,
                    }
                )
                result = run(spec, Path(name))
                file.save(result.model, Path(name) / "model")
                run(spec, Path(name), resume=Path(name) / "checkpoint")
                spec = spec.model_copy(update={"init": "m:1"})
                run(spec, Path(name), init=file.load(Path(name) / "model"))
    print(json.dumps({"warm": len(before), "late": sorted(compiled() - before), "twice": twice(compiled())}))
