"""Compile every kernel before anybody waits for it, or load it from the cache.

What serving needs and what training needs are apart: a process that only serves does not pay for the learners.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from core.corpus import formats, report
from core.corpus.conll import read_conll
from core.corpus.corpus import Corpus
from core.corpus.generate import generate
from core.corpus.segmented import read_segmented
from core.evaluate.significance import resampled_f1
from core.features.matching import NO_LEXICONS, Lexicons
from core.features.spec import FeatureSpec, InformationGain
from core.learn import warm_start
from core.learn.batch import Batch
from core.learn.evaluation import Weights
from core.learn.loop import train
from core.learn.problem import compile_corpus
from core.learn.registry import EXAMPLES, uses_threads
from core.learn.trainer import TrainerSpec
from core.lexicon.lexicon import Lexicon
from core.model.build import build_model
from core.model.decoding import Wanted, decode
from core.model.explanation import explain
from core.model.file import save
from core.model.tagger import Coded, Sentence, Tagger
from core.specs import DevFraction, TrainSpec
from core.steps import finished

_MAX_LINE_BYTES = 1 << 16


def serving() -> float:
    """Make ready what an API process runs: reading corpora, opening models, tagging. Returns the seconds it took."""
    return _seconds(_serving)


def training() -> float:
    """Make ready what a worker may ever run: serving's kernels and every trainer. Returns the seconds it took."""
    return _seconds(_training)


def cache_kernels(processes: int) -> float:
    """Fill the cache with what a worker may ever run, trainers in so many processes. Returns the seconds it took."""
    return _seconds(lambda: _cache_kernels(processes))


def trainer(spec: TrainerSpec) -> float:
    """Make ready one trainer, and what all need. Returns the seconds it took; the second time they are none."""
    return _seconds(lambda: _example(EXAMPLES[type(spec)]))


def evaluation() -> float:
    """Make ready what compares versions, and what that shares with serving. Returns the seconds it took."""
    return _seconds(_evaluation)


def _seconds(action: Callable[[], None]) -> float:
    began = perf_counter()
    action()
    return perf_counter() - began


#: Templates of label pairs have a kernel of their own.
_PLAIN = (FeatureSpec(), FeatureSpec(templates="U:%x[0,0]\nB\nB:%x[0,0]"))


@cache
def _tagging() -> list[tuple[Tagger, Coded]]:
    """Tag with a model of each kind."""
    return [_tagged(_corpus(), features, [["word", "CAP"], ["42", "NUM"]]) for features in _PLAIN]


@cache
def _serving() -> None:
    report.warm()
    formats.warm()
    for tagger, coded in _tagging():
        decoded = decode(tagger, coded, Wanted(nbest=2, posterior=True, distributions=True))
        list(explain(tagger, coded, decoded, [(0, 0)]))


@cache
def _match() -> None:
    """Make a model of every kind of column that looks into a lexicon, raw text or the words of the training text.

    Nobody waits for this at a start: such a model is made ready when it is opened.
    """
    words, clusters, text = ("lex_" + digit * 40 for digit in "012")
    lexicons = {
        words: Lexicon("words", ("a a", "b"), ()),
        clusters: Lexicon("clusters", ("a", "b"), ("01", "10")),
        text: Lexicon("text", ("aabaa", "aab"), ()),
    }
    columns: dict[str, dict[str, Any]] = {
        "forward": {"kind": "lexicon", "lexicon": words},
        "backward": {"kind": "lexicon", "lexicon": words, "match": "backward"},
        "cluster": {"kind": "cluster", "lexicon": clusters},
        "text": {"kind": "text", "lexicon": text, "measure": "information"},
        "same": {"kind": "same"},
        "word": {"kind": "word"},
        "pair": {"kind": "word-pair", "shortest": 1},
        "length": {"kind": "word-length", "side": "start"},
    }
    templates = "\n".join(f"U{name}:%x[0,{name}]" for name in columns)
    features = FeatureSpec.model_validate({"templates": templates, "derived": columns})
    corpus = read_segmented([b"aa b cc\nb aa cc\naa b aa\n"], max_line_bytes=_MAX_LINE_BYTES)
    _tagged(corpus, features, ["a", "a", "b", "d"], lexicons)


def _tagged(
    corpus: Corpus, features: FeatureSpec, sentence: Sentence, lexicons: Lexicons = NO_LEXICONS
) -> tuple[Tagger, Coded]:
    """Compile a corpus and tag with a model, from its file, in which every feature has a weight."""
    compiled = compile_corpus(features.resolve(len(corpus.columns)), corpus, lexicons)
    problem = compiled.problem
    values = np.zeros((problem.rows, problem.width), np.float32)
    values[:, : len(problem.labels)] = 1
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(build_model(compiled, Weights(problem, values.reshape(-1))), path)
        tagger = Tagger.open(path)
        coded = tagger.code([sentence])
        tagger.decode(coded)
        return tagger, coded


@cache
def _evaluation() -> None:
    _tagging()
    finished(resampled_f1([np.ones((2, 3), np.int64)], 1, 1))


def _training() -> None:
    for make_ready in (_serving, _match, _evaluation):
        make_ready()
    for example in EXAMPLES.values():
        _example(example)


def _cache_kernels(processes: int) -> None:
    first, *others = dict.fromkeys(EXAMPLES.values())
    # What trainers share is compiled once, before they part, and so is what serving, matching and evaluation share.
    _example(first)
    _tagging()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        apart = [pool.submit(make_ready) for make_ready in (_serving, _match, _evaluation)]
        apart += [pool.submit(_example, other) for other in others]
    for each in apart:
        each.result()


@cache
def _example(trainer: TrainerSpec) -> None:
    """Run an example once, however many kinds share it."""
    corpus = _corpus()
    # Only the pairs of the data, and a selection that keeps every template: both are kernels, all others are the same.
    features = FeatureSpec(pairs="seen", select=InformationGain(kind="information-gain", templates=1000))
    spec = TrainSpec.model_validate(
        {
            "kind": "train",
            "model": "warm",
            "corpus": "crp_warm",
            "dev": DevFraction(fraction=0.2),
            "features": features,
            "trainer": trainer,
        }
    )
    for plain in _PLAIN:
        compile_corpus(plain.resolve(len(corpus.columns)), corpus)
    compiled = compile_corpus(features.resolve(len(corpus.columns)), corpus)
    warm_start.weights_of(finished(train(spec, corpus, None)).model, compiled)
    if uses_threads(trainer):
        # Batch trainers turn to float64 for the last digits, which no short run comes to.
        batch = Batch.of(compiled.problem, 1, np.float64)
        finished(batch.evaluate(np.zeros(batch.parameters)))


def _corpus() -> Corpus:
    return read_conll(generate("references", 20, 1), max_line_bytes=_MAX_LINE_BYTES)
