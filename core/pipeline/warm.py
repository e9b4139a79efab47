"""Warm-up: compile kernels, or load them from the cache, before a request or job needs them.

Serving and training are separate, so a process that only serves does not load the trainers.
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

from tagsmith.core.base import json_cut
from tagsmith.core.base.regex import Regex
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus import near_copies, report
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.segmented import read_segmented
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.evaluate.significance import resampled_f1
from tagsmith.core.features.lexicon.lexicon import NO_LEXICONS, Lexicon, Lexicons
from tagsmith.core.features.spec import FeatureSpec, InformationGain
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.run.spec import Learning
from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.learn.trainers.batch.gradient import Batch
from tagsmith.core.learn.trainers.registry import EXAMPLES
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.explanation import explain
from tagsmith.core.model.file import save
from tagsmith.core.model.parser import parse
from tagsmith.core.model.tagger import Coded, Sentence, Tagger
from tagsmith.core.pipeline import warm_start
from tagsmith.core.pipeline.build import build_model
from tagsmith.core.pipeline.train import train

_MAX_LINE_BYTES = 1 << 16


def serving() -> float:
    """Warm up the kernels of an API process: reading corpora, opening models, tagging. Return the seconds."""
    return _seconds(_serving)


def training() -> float:
    """Warm up all kernels of a worker: those of serving and all trainers. Return the seconds."""
    return _seconds(_training)


def cache_kernels(processes: int) -> float:
    """Fill the cache with all kernels of a worker, in several processes. Return the seconds."""
    return _seconds(lambda: _cache_kernels(processes))


def trainer(spec: TrainerSpec) -> float:
    """Warm up one trainer and the kernels that all trainers use. Return the seconds; a repeated call takes none."""
    return _seconds(lambda: _example(EXAMPLES[type(spec)]))


def evaluation() -> float:
    """Warm up the comparison of versions and the kernels it shares with serving. Return the seconds."""
    return _seconds(_evaluation)


def ranking() -> float:
    """Warm up the choice of sentences to label and the kernels it shares with serving. Return the seconds."""
    return _seconds(_ranking)


def _seconds(action: Callable[[], None]) -> float:
    began = perf_counter()
    action()
    return perf_counter() - began


#: Features without and with templates of label pairs, which have separate kernels.
_PLAIN = (FeatureSpec(), FeatureSpec(templates="U:%x[0,0]\nB\nB:%x[0,0]"))


@cache
def _tagging() -> list[tuple[Tagger, Coded]]:
    """Tag with a model of each kind of features."""
    return [_tagged(_corpus(), features, [["word", "CAP"], ["42", "NUM"]]) for features in _PLAIN]


@cache
def _serving() -> None:
    report.warm()
    formats.warm()
    Regex("a").find("a")
    json_cut.warm()
    for tagger, coded in _tagging():
        decoded = decode(tagger, coded, DecodingOptions(nbest=2, posterior=True, distributions=True))
        list(explain(tagger, coded, decoded, [(0, 0)]))


@cache
def _match() -> None:
    """Tag with a model of every kind of column that uses a lexicon, raw text or the words of the training text.

    Not part of the warm-up of serving: such a model is warmed up when it is opened.
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


@cache
def _trees() -> None:
    """Learn from dependency trees, and parse with every option.

    Not part of the warm-up of serving: a parser is warmed up when it is opened.
    """
    options = {"columns": "form,upos", "label": "tree"}
    corpus = formats.read(
        generate("crossing-trees", 20, 1), "conllu", max_line_bytes=_MAX_LINE_BYTES, options=options
    )
    spec = Learning.model_validate(
        {"features": {"preset": "parsing"}, "trainer": {"kind": "averaged-perceptron", "passes": 1}}
    )
    tagger = Tagger(finished(train(spec, corpus, 0.2)).model)
    parse(tagger, tagger.code_corpus(corpus), probabilities=True)


def _tagged(
    corpus: Corpus, features: FeatureSpec, sentence: Sentence, lexicons: Lexicons = NO_LEXICONS
) -> tuple[Tagger, Coded]:
    """Build a model in which every feature has a weight, save it, and tag with its file."""
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


@cache
def _ranking() -> None:
    _serving()
    near_copies.warm()


def _training() -> None:
    for warm_up in (_serving, _match, _evaluation, _ranking, _trees):
        warm_up()
    for example in EXAMPLES.values():
        _example(example)


def _cache_kernels(processes: int) -> None:
    first, *others = dict.fromkeys(EXAMPLES.values())
    # Compile shared kernels once, before the processes start.
    _example(first)
    _tagging()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        submitted = [pool.submit(warm_up) for warm_up in (_trees, _ranking, _match, _evaluation)]
        submitted += [pool.submit(_example, other) for other in others]
    for each in submitted:
        each.result()


@cache
def _example(trainer: TrainerSpec) -> None:
    """Run the example of a trainer. Cached, because several kinds can share one example."""
    corpus = _corpus()
    # `pairs` and `select` have kernels of their own. The selection keeps every template.
    features = FeatureSpec(pairs="seen", select=InformationGain(kind="information-gain", templates=1000))
    spec = Learning.model_validate({"features": features, "trainer": trainer})
    for plain in _PLAIN:
        compile_corpus(plain.resolve(len(corpus.columns)), corpus)
    compiled = compile_corpus(features.resolve(len(corpus.columns)), corpus)
    warm_start.weights_of(finished(train(spec, corpus, 0.2)).model, compiled)
    if trainer.uses_threads:
        # Batch trainers switch to float64 near convergence, which a short run does not reach.
        batch = Batch.of(compiled.problem, 1, np.float64)
        finished(batch.evaluate(np.zeros(batch.parameters)))


def _corpus() -> Corpus:
    return read_conll(generate("references", 20, 1), max_line_bytes=_MAX_LINE_BYTES)
