"""Compile every kernel before anybody waits for it, or load it from the cache.

What serving needs and what training needs are apart: a process that only serves does not pay for the learners.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from core.corpus import report
from core.corpus.conll import read_conll
from core.corpus.corpus import Corpus
from core.corpus.generate import generate
from core.features.spec import FeatureSpec
from core.learn.evaluation import Weights
from core.learn.loop import train
from core.learn.problem import compile_corpus
from core.learn.registry import EXAMPLES
from core.model.build import build_model
from core.model.file import save
from core.model.tagger import Tagger
from core.specs import DevFraction, TrainSpec

_MAX_LINE_BYTES = 1 << 16


def serving() -> float:
    """Make ready what an API process runs: reading corpora, opening models, tagging. Returns the seconds it took."""
    began = perf_counter()
    report.warm()
    corpus = _corpus()
    compiled = compile_corpus(FeatureSpec().resolve(len(corpus.columns)), corpus)
    problem = compiled.problem
    values = np.zeros((problem.attributes + len(problem.labels)) * problem.width, np.float32)
    values[: problem.width] = 1
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(build_model(compiled, Weights(problem, values)), path)
        Tagger.open(path).tag([[["word", "CAP"], ["42", "NUM"]]])
    return perf_counter() - began


def training() -> float:
    """Make ready what a worker runs: serving's kernels and every trainer. Returns the seconds it took."""
    began = perf_counter()
    serving()
    corpus = _corpus()
    for example in EXAMPLES:
        spec = TrainSpec(
            kind="train", model="warm", corpus="crp_warm", dev=DevFraction(fraction=0.2), trainer=example
        )
        for _ in train(spec, corpus, None):
            pass
    return perf_counter() - began


def _corpus() -> Corpus:
    return read_conll(generate("references", 20, 1), max_line_bytes=_MAX_LINE_BYTES)
