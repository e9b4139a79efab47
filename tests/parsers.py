"""Small parsers, trained once per process, and the trees that they are trained on."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.jobs import kinds
from tagsmith.core.model import file
from tests.training import train

COLUMNS = "form,lemma,upos,feats"
#: Few, because compiling and training them is not what these tests are about.
FEATURES: dict[str, dict[str, Any]] = {
    "form": {
        "templates": [
            ["head.form"],
            ["modifier.form"],
            ["head.form", "modifier.form"],
            ["direction", "distance"],
        ]
    },
    COLUMNS: {
        "templates": [
            ["head.upos", "modifier.upos", "direction", "distance"],
            ["head.upos", "between.upos", "modifier.upos"],
            ["head.form", "modifier.form"],
            ["head.upos", "modifier.form"],
            ["modifier.feats", "head.upos"],
            ["head.lemma"],
        ]
    },
}
TRAINER = {"kind": "sgd", "passes": 4}


def text(sentences: int = 80, seed: int = 1) -> bytes:
    """Trees in CoNLL-U."""
    return b"".join(generate("trees", sentences, seed))


def corpus(columns: str = COLUMNS, sentences: int = 80, seed: int = 1) -> Corpus:
    options = {"columns": columns, "label": "tree"}
    return formats.read([text(sentences, seed)], "conllu", max_line_bytes=1 << 16, options=options)


def spec(corpus_id: str = "crp_x", columns: str = COLUMNS, **changes: Any) -> dict[str, Any]:
    """A spec that trains in no time."""
    return {
        "kind": "train",
        "model": "parser",
        "corpus": corpus_id,
        "trainer": TRAINER,
        "features": FEATURES[columns],
        **changes,
    }


@cache
def model_file(columns: str = COLUMNS, *, relations: bool = True, passes: int = 4) -> bytes:
    """Train a parser and return its file."""
    features = {**FEATURES[columns], "relations": relations}
    job = kinds.parse_job(spec(features=features, trainer={**TRAINER, "passes": passes}))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "parser"
        file.save(finished(train(job, corpus(columns))).model, path)
        return path.read_bytes()
