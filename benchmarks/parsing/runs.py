"""Training a parser and scoring it, for both benchmarks of parsing."""

import resource
import time
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parsing.treebanks import rows_of
from benchmarks.parsing.udpipe import trees_of
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus, Trees
from tagsmith.core.evaluate.trees import TreeMetrics, evaluate, punctuation
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.information_gain import compile_selected
from tagsmith.core.learn.problem.problem import Compiled
from tagsmith.core.learn.run.loop import Learned, learn
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.model.file import save
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.build import build_model

#: Sentences that compile all kernels before anything is timed.
_WARM = 20


@dataclass(frozen=True)
class Trained:
    """A trained parser. Seconds are from the corpus to the weights."""

    compiled: Compiled
    learned: Learned
    compile_seconds: float
    seconds: float
    processor_seconds: float

    @property
    def figures(self) -> dict[str, Any]:
        """What every row records of a training run."""
        return {
            "passes": self.learned.passes,
            "features": self.learned.active_features,
            "attributes": self.compiled.problem.attributes,
            "compile_seconds": round(self.compile_seconds, 1),
            "seconds": round(self.seconds, 1),
            "processor_seconds": round(self.processor_seconds, 1),
        }


def train(
    features: FeatureSpec, trainer: dict[str, Any], corpus: Corpus, dev: Corpus | None = None
) -> Trained:
    """Train, with compiled kernels. `dev` is scored after each pass, which counts in the seconds."""
    _train(features, trainer, corpus.subset(np.arange(min(_WARM, corpus.sentences))), dev and dev.subset([0]))
    return _train(features, trainer, corpus, dev)


def _train(features: FeatureSpec, trainer: dict[str, Any], corpus: Corpus, dev: Corpus | None) -> Trained:
    learning = Learning.model_validate({"features": features, "trainer": trainer})
    began = time.perf_counter(), time.process_time()
    compiled, _ = compile_selected(learning.features, corpus)
    ready = time.perf_counter()
    learned = finished(learn(learning, compiled.problem, None if dev is None else compiled.problem_of(dev)))
    return Trained(
        compiled, learned, ready - began[0], time.perf_counter() - began[0], time.process_time() - began[1]
    )


def saved(trained: Trained, path: Path) -> Tagger:
    """Write the model, and open it as it is served."""
    save(build_model(trained.compiled, trained.learned.weights), path)
    return Tagger.open(path)


def score(tagger: Tagger, corpus: Corpus) -> TreeMetrics:
    """Parse a corpus from strings, and score the trees."""
    assert corpus.trees is not None
    parsed = tagger.parse(rows_of(corpus))
    heads = list(chain.from_iterable(sentence.heads for sentence in parsed))
    relations = list(
        chain.from_iterable(sentence.relations or ["_"] * len(sentence.heads) for sentence in parsed)
    )
    return agreement(corpus, trees_of(heads, relations))


def correct(trained: Trained, corpus: Corpus) -> list[int]:
    """Return the number of right heads of each sentence, by the weights of a run, without a model file."""
    problem = trained.compiled.problem_of(corpus)
    assert corpus.trees is not None
    assert problem.gold_trees is not None
    found = problem.gold_trees.predicted(trained.learned.weights.decode(problem), problem.labels)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(found.heads == corpus.trees.heads)])
    right: list[int] = np.diff(before[corpus.offsets]).tolist()
    return right


def agreement(corpus: Corpus, found: Trees) -> TreeMetrics:
    """Score trees against those of a corpus."""
    assert corpus.trees is not None
    return evaluate(corpus.trees, found, corpus.offsets, punctuation(corpus.columns[0]))


def attachment(metrics: TreeMetrics, *, relations: bool) -> dict[str, float | None]:
    """Return the attachment scores, with punctuation counted and not. Without relations there is no LAS."""
    names = ["uas", "uas_without_punctuation", *(["las", "las_without_punctuation"] if relations else [])]
    return {name: None if (value := getattr(metrics, name)) is None else round(value, 2) for name in names}


def peak_mib() -> int:
    """Return the peak of memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
