"""What a server has before its contract is tested: without any of it, nearly every request would end at a 404."""

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tagsmith.client import Client
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.jobs import kinds
from tagsmith.core.model import file
from tagsmith.wire import Job
from tests import parsers
from tests.training import train

#: Versions of each model, corpora and lexicons that jobs name; of each there are others too, that can be deleted.
VERSIONS = 3
KEPT, SPARE = 4, 4
TRAINER = {"kind": "sgd-l1", "passes": 2}
#: Too long for the worker of a run, which takes quick jobs only: they wait to its end, and those that requests make are
#: really worked on.
ENDLESS = {"kind": "sgd-l1", "passes": 100_000}

TEXT = b"".join(generate("references", 60, 1))
#: Without the column in the middle: a model of this tags plain tokens, and text.
WORDS = re.sub(rb"(?m)^(\S+)\s.*\s(\S+)$", rb"\1 \2", TEXT)
MODELS = {"first": TEXT, "second": WORDS}
#: A model of words that finds heads instead of labels.
PARSER = "parser"
#: Models that can be deleted: no alias points to them.
SPARE_MODELS = tuple(f"spare-{n}" for n in range(SPARE))


@dataclass(frozen=True, slots=True)
class Seeds:
    """Ids and names of existing things, for requests."""

    #: No job names the last corpora and lexicons, so they can be deleted.
    corpora: list[str]
    lexicons: list[str]
    keys: list[str]
    #: By state (`waiting`, `paused`, `cancelled`), `unwanted` (to be cancelled), `spare` (to be deleted), and by kind
    #: if they succeeded.
    jobs: dict[str, list[str]]
    models: tuple[str, ...] = (*MODELS, PARSER)
    spare_models: tuple[str, ...] = SPARE_MODELS
    aliases: tuple[str, ...] = ("champion", "next")
    versions: tuple[int, ...] = tuple(range(1, VERSIONS + SPARE + 1))
    #: References to versions, all different.
    references: tuple[str, ...] = tuple(
        f"{name}:{n}" for name in (*MODELS, PARSER) for n in range(1, VERSIONS + 1)
    )
    #: A model file, to be imported.
    artifact: bytes = field(default=b"", repr=False)


def artifact(text: bytes) -> bytes:
    """Train a model and return its file."""
    corpus = conll.read_conll([text], max_line_bytes=1000)
    job = kinds.parse_job({"kind": "train", "model": "made", "corpus": "crp_x", "trainer": TRAINER})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        file.save(finished(train(job, corpus, None)).model, path)
        return path.read_bytes()


def plant(url: str, key: str | None, *, workers: bool) -> Seeds:
    """Create some things of each kind; with workers, also finished jobs of each kind."""
    files = {name: artifact(text) for name, text in MODELS.items()} | {PARSER: parsers.model_file("form")}
    with Client(url, key=key) as client:
        texts = [*MODELS.values()] * (KEPT // len(MODELS)) + [TEXT] * SPARE
        corpora = [client.upload(text, name="seed").id for text in texts]
        trees = {"columns": "form", "label": "tree"}
        corpora[KEPT - 1] = client.upload(parsers.text(20), "seed", "conllu", trees).id
        lexicons = [client.upload_lexicon(f"Ada\nGrace {n}\n".encode()).id for n in range(KEPT + SPARE)]
        for name, content in files.items():
            for _ in range(VERSIONS + SPARE):
                client.import_model(name, content)
            for alias, version in (("next", 2), ("champion", 1), ("champion", 2), ("champion", 3)):
                client.promote(name, version, alias=alias)
            # This policy removes no version.
            client.set_policy(name, retention={"keep_last": 1_000})
        for name in SPARE_MODELS:
            client.import_model(name, files["first"])
        jobs = _ended(client, corpora[0]) if workers else {}
        # They also protect their corpus from deletion. Most are paused, because each can be resumed only once.
        jobs |= {"waiting": _wait(client, corpora[0], 4), "unwanted": _wait(client, corpora[0], 4)}
        asked = (
            ("cancelled", client.cancel, 4),
            ("spare", client.cancel, SPARE),
            ("paused", client.pause, 12),
        )
        for state, ask, count in asked:
            jobs[state] = [ask(job).id for job in _wait(client, corpora[0], count)]
    return Seeds(corpora, lexicons, _keys(url, key), jobs, artifact=files["first"])


def _train(client: Client, corpus: str, trainer: dict[str, Any]) -> Job:
    return client.train({"model": "trained", "corpus": corpus, "trainer": trainer})


def _wait(client: Client, corpus: str, count: int) -> list[str]:
    return [_train(client, corpus, ENDLESS).id for _ in range(count)]


def _ended(client: Client, corpus: str) -> dict[str, list[str]]:
    made = {
        "train": _train(client, corpus, TRAINER),
        "evaluate": client.evaluate(["first:1", "first:2"], corpus),
        "tag": client.tag_corpus("first:1", corpus),
        "rank": client.rank("first:1", corpus),
        "compare": client.compare({"corpus": corpus, "dev": {"fraction": 0.2}, "trainers": [TRAINER]}),
    }
    for job in made.values():
        ended = client.wait(job.id)
        assert ended.state == "succeeded", ended.error
    return {kind: [job.id] for kind, job in made.items()}


def _keys(url: str, key: str | None) -> list[str]:
    """Create keys to read and to revoke. None can be created if keys are not required."""
    if key is None:
        return []
    headers = {"Authorization": f"Bearer {key}"}
    asked = {"name": "seed", "scopes": ["read"]}
    made: list[Any] = [httpx.post(f"{url}/keys", json=asked, headers=headers).json() for _ in range(4)]
    return [each["id"] for each in made]
