"""Model files taken apart and put together again with right checksums: whoever makes a file can make those."""

import hashlib
import json
from typing import Any

import numpy as np

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.conll import read_conll
from tagsmith.core.corpus.formats.conllu import read_conllu
from tagsmith.core.corpus.formats.segmented import read_segmented
from tagsmith.core.features.lexicon.lexicon import Lexicon
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.file import MAGIC
from tagsmith.core.model.model import SparseModel
from tagsmith.core.pipeline.build import build_model

LEXICON = "lex_" + "0" * 40
NAMES = Lexicon("typed", ("New York", "York", "Zürich"), ("LOC", "ORG", "LOC"))
COLUMNS = "New NNP B-NP\nYork NNP I-NP\nsaid VBD O\n\nZürich NNP B-NP\nrose VBD O\n. . O\n"

RICH = {
    "syntax": "wapiti",
    "templates": 'u0:%x[0,0]\nu1:%x[-1,0]/%X[1,1]\nu2:%t[0,0,"^\\u"]\nu3:%x[@1,1]\nu4:%x[0,name]\n'
    "u5:%x[0,same]\nu6:%x[0,parts]\nb\nb1:%x[0,1]\nb2:%x[-2,end]",
    "derived": {
        "end": {"kind": "suffix", "n": 2},
        "parts": {"kind": "substrings", "n": 3},
        "name": {"kind": "lexicon", "lexicon": LEXICON},
        "same": {"kind": "same"},
    },
}
ARCS = {
    "structure": "tree",
    "templates": [
        ["head.form", "modifier.end"],
        ["head.upos", "modifier.upos"],
        ["head.upos[-1]", "modifier.upos[2]", "direction", "distance"],
        ["between.upos", "modifier.upos", "head.upos"],
        ["direction"],
    ],
    "derived": {"end": {"kind": "suffix", "n": 2, "of": "form"}},
}
TREES = """\
1\tNew\t_\tADJ\t_\t_\t2\tamod\t_\t_
2\tYork\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tgrew\t_\tVERB\t_\t_\t0\troot\t_\t_
4\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_

1\tZürich\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\trose\t_\tVERB\t_\t_\t0\troot\t_\t_
"""
WORDS = {
    "templates": "U0:%x[0,0]\nU1:%x[0,word]\nU2:%x[0,pair]\nU3:%x[0,length]\nB",
    "derived": {
        "word": {"kind": "word", "n": 2},
        "pair": {"kind": "word-pair", "shortest": 1, "longest": 3},
        "length": {"kind": "word-length", "side": "start"},
    },
}


def rich_model() -> SparseModel:
    """A small model with everything that looks at columns."""
    return _random(RICH, read_conll([COLUMNS.encode()], max_line_bytes=1000))


def trees_model() -> SparseModel:
    """A small parser with every kind of place."""
    corpus = read_conllu([TREES.encode()], max_line_bytes=1000, columns=("form", "upos"), label="tree")
    return _random(ARCS, corpus)


def words_model() -> SparseModel:
    """A small model with a dictionary of training text."""
    return _random(
        WORDS,
        read_segmented(["我们 在 上海市 工作\n上海市 很 大\n我们 去 上海\n".encode()], max_line_bytes=1000),
    )


def _random(spec: dict[str, Any], corpus: Corpus) -> SparseModel:
    features = FeatureSpec.model_validate(spec).resolve(corpus.names, trees=corpus.trees is not None)
    compiled = compile_corpus(features, corpus, {LEXICON: NAMES})
    problem, labels = compiled.problem, len(compiled.problem.labels)
    values = np.zeros((problem.rows, problem.width), np.float32)
    values[:, :labels] = np.random.default_rng(3).normal(size=(problem.rows, labels))
    return build_model(compiled, Weights(problem, values.reshape(-1)))


def taken_apart(data: bytes) -> tuple[dict[str, Any], bytearray]:
    """The header and the arrays of a file."""
    length = int.from_bytes(data[8:16], "little")
    return json.loads(data[48 : 48 + length]), bytearray(data[48 + length :])


def put_together(header: dict[str, Any], payload: bytes) -> bytes:
    """A file with right checksums."""
    text = json.dumps({**header, "sha256": hashlib.sha256(payload).hexdigest()}).encode()
    return MAGIC + len(text).to_bytes(8, "little") + hashlib.sha256(text).digest() + text + payload
