"""A small corpus, and specs that fit it."""

from typing import Any

TEXT = b"Rockwell NNP B-NP\nsaid VBD B-VP\n\nIt PRP B-NP\nrose VBD B-VP\n. . O\n"
TEMPLATES = "U00:%x[0,0]\nU01:%x[0,1]\nU02:%x[-1,1]/%x[0,1]\nB"


def spec(corpus_id: str, **changes: Any) -> dict[str, Any]:
    """A spec that trains in no time."""
    trainer = {"kind": "sgd-l1", "l1": 0.01, "passes": 2}
    base = {"kind": "train", "model": "chunker", "corpus": corpus_id, "trainer": trainer}
    return {**base, "features": {"templates": TEMPLATES}, **changes}
