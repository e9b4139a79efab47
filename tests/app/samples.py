"""A small corpus, and specs that fit it."""

from pathlib import Path
from typing import Any

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import conll
from tagsmith.core.jobs import kinds
from tagsmith.core.model import file
from tagsmith.core.registry.models import NewVersion
from tests.training import train

TEXT = b"Rockwell NNP B-NP\nsaid VBD B-VP\n\nIt PRP B-NP\nrose VBD B-VP\n. . O\n"
#: What is stored with a version that no job made.
NEW = NewVersion(
    objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
    seed=1, code_version="test", job_id=None,
)  # fmt: skip
TEMPLATES = "U00:%x[0,0]\nU01:%x[0,1]\nU02:%x[-1,1]/%x[0,1]\nB"


def spec(corpus_id: str, **changes: Any) -> dict[str, Any]:
    """A spec that trains in no time."""
    trainer = {"kind": "sgd-l1", "l1": 0.01, "passes": 2}
    base = {"kind": "train", "model": "chunker", "corpus": corpus_id, "trainer": trainer}
    return {**base, "features": {"templates": TEMPLATES}, **changes}


def model_file(mark: str, path: Path) -> bytes:
    """Train a model whose every label ends in `mark`, so that an answer shows which model gave it."""
    words = [
        ("Rockwell", "NNP", "name"),
        ("said", "VBD", "act"),
        ("It", "PRP", "name"),
        ("rose", "VBD", "act"),
    ]
    text = "".join(f"{word} {tag} {label}-{mark}\n" for word, tag, label in words * 3) + "\n"
    corpus = conll.read_conll([text.encode()] * 3, max_line_bytes=1000)
    job = kinds.parse_job(spec("crp_x", trainer={"kind": "sgd-l1", "l1": 0.001, "passes": 5}))
    file.save(finished(train(job, corpus, None)).model, path)
    return path.read_bytes()
