"""A small model that tags text, published to a running server."""

from pathlib import Path

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import conll
from tagsmith.core.jobs import kinds
from tagsmith.core.model import file
from tests.app import samples
from tests.training import train

CORPUS = (
    b"Ada B-PER\nLovelace I-PER\nwrote O\nto O\nCharles B-PER\nBabbage I-PER\n. O\n\n"
    b"Charles B-PER\nBabbage I-PER\nlived O\nin O\nLondon B-LOC\n. O\n\n"
    b"Ada B-PER\nsaw O\nLondon B-LOC\n. O\n\nLondon B-LOC\n\nso O\n\n"
)
TEXT = "Ada Lovelace  wrote to\nCharles Babbage in London."


def model_file(path: Path) -> Path:
    """Train the model and write its file."""
    corpus = conll.read_conll([CORPUS] * 5, max_line_bytes=1000)
    features = {"templates": "U:%x[0,0]\nU1:%x[-1,0]\nB"}
    job = kinds.parse_job(samples.spec("crp_x", features=features, trainer={"kind": "sgd", "passes": 10}))
    file.save(finished(train(job, corpus, None)).model, path)
    return path
