"""What the tests of the page share: words-only corpora, and a server full of things to show."""

from dataclasses import dataclass

import httpx

from tagsmith.client import Client
from tagsmith.core.corpus.synthetic.generate import generate

TEXT = "Smith, J. and Ada Lovelace 1998. Learning to tag things. In Proc. of ACL, London."
ENDLESS = {"kind": "sgd-l1", "passes": 100_000}


def words(sentences: int, seed: int) -> bytes:
    """Generated references, words and labels only: what a model that takes text is trained on."""
    rows = [line.split() for line in b"".join(generate("references", sentences, seed)).decode().split("\n")]
    return "\n".join(f"{row[0]}\t{row[-1]}" if row else "" for row in rows).encode()


@dataclass(frozen=True)
class Filled:
    """Names and ids of what a server holds."""

    url: str
    model: str
    corpus: str
    jobs: dict[str, str]


def fill(client: Client, url: str) -> Filled:
    """Upload, train two versions, promote both in turn, and run a job of each kind that has a result to draw."""
    corpus = client.upload(words(300, 1), name="references-train")
    test = client.upload(words(80, 2), name="references-test")
    common = {"model": "references", "corpus": corpus.id, "dev": {"corpus": test.id}}
    for preset in ("chunking", "ner"):
        spec = {**common, "features": {"preset": preset}, "trainer": {"kind": "sgd-l1", "passes": 10}}
        trained = client.wait(client.train(spec).id)
        assert trained.state == "succeeded", trained.error
    client.promote("references", 1, reason="the first one")
    client.promote("references", 2, reason="better on dev")
    search = {"kind": "grid", "fields": {"features.cutoff": [1, 3], "trainer.passes": [2, 5]}}
    perceptron = {"kind": "averaged-perceptron", "passes": 5}
    descent = {"kind": "sgd-l1", "passes": 5}
    specs = {
        "evaluate": {"models": ["references:1", "references:2"], "corpus": test.id},
        "compare": {"corpus": corpus.id, "dev": {"corpus": test.id}, "trainers": [perceptron, descent]},
        "rank": {"model": "references:2", "corpus": test.id, "top": 20},
        "tune": {"corpus": test.id, "trainer": perceptron, "search": search, "folds": 2},
    }  # fmt: skip
    jobs = {"train": trained.id}
    for kind, spec in specs.items():
        posted = httpx.post(f"{url}/jobs", json={"kind": kind, **spec}).raise_for_status().json()
        ended = client.wait(posted["id"])
        assert ended.state == "succeeded", ended.error
        jobs[kind] = ended.id
    return Filled(url, "references", corpus.id, jobs)
