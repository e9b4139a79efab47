"""`tagsmith demo`: one run from upload to rollback in a temporary stack, with the curl command of every call."""

import json
import shlex
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.app.cli.console import Console
from tagsmith.client import Client
from tagsmith.core.base.errors import Unavailable
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.evaluate.spans import spans_of
from tagsmith.core.service.settings import Settings
from tagsmith.wire import Job, TagResponse

MODEL = "refs"
#: The seeds differ, so that the demo tags sentences that are not in the training corpus.
CORPUS_SEED, UNSEEN_SEED = 1, 2
UNSEEN_SENTENCES = 300
SHOWN_SENTENCES = 2
SHOWN_CHARACTERS = 200
#: An alias move reaches every API process within two seconds.
FOLLOW_TIMEOUT_S = 5.0

#: Words and their neighbours only: a weak first version, which the second one improves on.
WORDS_ONLY = "U00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[1,0]\nB"
FIRST_SPEC: dict[str, Any] = {
    "features": {"templates": WORDS_ONLY},
    "trainer": {"kind": "sgd-l1", "l1": 1.0, "passes": 10},
    "promote": "champion",
}
SECOND_SPEC: dict[str, Any] = {
    "features": {"preset": "generic"},
    "trainer": {"kind": "sgd-l1", "l1": 0.3, "passes": 15},
}


def run(sentences: int) -> int:
    """Run the demo and return the exit code."""
    console = Console()
    started_at = time.monotonic()
    # Like Ctrl-C: leave the `with` blocks below, which stop the stack and remove the directory.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="tagsmith-demo-") as directory:
        settings = Settings.from_env({}, {"port": 0, "data_dir": Path(directory) / "data"})
        console.heading("Starting a private stack: SQLite, Redis, one worker, the API")
        console.line("  (the first start on a machine compiles the kernels, one to two minutes)")
        stack = BackgroundStack(settings)
        with stack, Client(stack.url) as client:
            console.line(f"  ready at {stack.url} after {time.monotonic() - started_at:.1f} s")
            _Demo(console, client, stack.url, Path(directory)).play(sentences)
            console.heading("Stopping everything")
    console.line(f"  done in {time.monotonic() - started_at:.1f} s. `make up` keeps such a stack running.")
    return 0


@dataclass(frozen=True, slots=True)
class _Sentence:
    rows: list[list[str]]  # attribute columns of each token
    labels: list[str]


class _Demo:
    def __init__(self, console: Console, client: Client, url: str, directory: Path) -> None:
        self._console = console
        self._client = client
        self._url = url
        self._directory = directory
        self._drawn = 0.0

    def play(self, sentences: int) -> None:
        corpus_id = self._upload(sentences)
        first = self._train(
            "Train version 1 on words alone, and point the alias `champion` to it", corpus_id, FIRST_SPEC
        )
        unseen = _unseen()
        tagged = self._tag(
            f"Tag {len(unseen)} references that are not in the corpus", unseen, _version(first)
        )
        shown = [i for i, tags in enumerate(tagged.tags) if tags != unseen[i].labels][:SHOWN_SENTENCES]
        self._console.line("    Two of the references with a wrong label:")
        self._show(tagged, unseen, shown)
        second = self._train(
            "Train version 2 with affixes, word shapes and character classes", corpus_id, SECOND_SPEC
        )
        self._promote(_version(second))
        tagged = self._tag("The same request now uses version 2", unseen, _version(second))
        self._show(tagged, unseen, shown)
        self._roll_back()
        tagged = self._tag("After the rollback, version 1 is used again", unseen, _version(first))
        self._show(tagged, unseen, shown[:1])
        self._show_history()

    def _upload(self, sentences: int) -> str:
        path = self._directory / "refs.conll"
        self._console.heading("Generate a labelled corpus and upload it")
        self._command(
            f"tagsmith corpus generate --kind references --sentences {sentences} --seed {CORPUS_SEED} "
            f"--out {path.name}"
        )
        with path.open("wb") as out:
            out.writelines(generate("references", sentences, CORPUS_SEED))
        for line in path.read_text(encoding="utf-8").splitlines()[:4]:
            self._console.line(f"    {line}")
        self._command(f"curl -s --data-binary @{path.name} '{self._url}/corpora?name=refs&format=conll'")
        corpus = self._client.upload(path, name="refs")
        self._console.line(
            f"    {corpus.id}: {corpus.sentences:,} sentences, {corpus.tokens:,} tokens, "
            f"{len(corpus.labels)} labels"
        )
        return corpus.id

    def _train(self, heading: str, corpus_id: str, spec: dict[str, Any]) -> Job:
        self._console.heading(heading)
        spec = {"model": MODEL, "corpus": corpus_id, "dev": {"fraction": 0.1}, **spec}
        self._curl("/jobs", {"kind": "train", **spec})
        job = self._client.train(spec)
        self._command(f"curl -sN -H 'Accept: text/event-stream' {self._url}/jobs/{job.id}/events")
        self._drawn = 0.0
        for event in self._client.follow(job.id):
            if event.type in ("progress", "pass"):
                self._show_progress(event.data, keep=event.type == "pass")
        self._console.clear_bar()
        job = self._client.job(job.id)
        if job.state != "succeeded":
            raise Unavailable(
                f"Job {job.id} ended as {job.state}: {job.error}. Run the demo again.", code="demo_failed"
            )
        version = self._client.version(MODEL, _version(job))
        self._console.line(
            f"    {MODEL}:{version.version}: dev F1 {_f1(version.metrics)}, "
            f"{version.active_features:,} active features, {version.size_bytes / 1e6:.1f} MB, "
            f"{version.train_seconds:.2f} s of training"
        )
        return job

    def _show_progress(self, progress: dict[str, Any], *, keep: bool) -> None:
        number, passes = progress.get("pass") or 0, progress.get("passes") or 0
        parts = [f"pass {number:>2}/{passes}"]
        if progress.get("objective") is not None:
            parts.append(f"objective {progress['objective']:,.1f}")
        if progress.get("dev"):
            parts.append(f"dev F1 {_f1({'dev': progress['dev']})}")
        if progress.get("tokens_per_second"):
            parts.append(f"{progress['tokens_per_second'] / 1e6:.2f} M tokens/s")
        text = "  ".join(parts)
        fraction = progress.get("fraction") or 0.0
        # Live progress is ahead of the recorded passes, which arrive in small batches. The bar never moves back.
        if fraction >= self._drawn:
            self._drawn = fraction
            self._console.bar(fraction, text)
        # Without a terminal, print a few points of the learning curve.
        if keep and not self._console.is_terminal and (number == passes or number % 5 == 1):
            self._console.line(f"    {text}")

    def _tag(self, heading: str, unseen: list[_Sentence], expected: int) -> TagResponse:
        self._console.heading(heading)
        sentences = [sentence.rows for sentence in unseen]
        self._curl("/tag", {"model": MODEL, "sentences": sentences}, shorten=True)
        end = time.monotonic() + FOLLOW_TIMEOUT_S
        tagged = self._client.tag(MODEL, sentences)
        while tagged.version != expected and time.monotonic() < end:
            time.sleep(0.05)
            tagged = self._client.tag(MODEL, sentences)
        if tagged.version != expected:
            raise Unavailable(
                f"The API used version {tagged.version}, not {expected}. Run the demo again.",
                code="demo_failed",
            )
        pairs = [
            (tag, label)
            for tags, sentence in zip(tagged.tags, unseen, strict=True)
            for tag, label in zip(tags, sentence.labels, strict=True)
        ]
        correct = sum(tag == label for tag, label in pairs)
        self._console.line(
            f"    {MODEL}:{tagged.version} labels {100 * correct / len(pairs):.2f} % of {len(pairs):,} tokens correctly"
        )
        return tagged

    def _show(self, tagged: TagResponse, unseen: list[_Sentence], shown: list[int]) -> None:
        for i in shown:
            words = [row[0] for row in unseen[i].rows]
            parts = [
                f"{span.type}: {' '.join(words[span.start : span.stop])}" for span in spans_of(tagged.tags[i])
            ]
            self._console.line(
                f"    {MODEL}:{tagged.version}  {_shortened(' | '.join(parts), SHOWN_CHARACTERS)}"
            )

    def _promote(self, version: int) -> None:
        self._console.heading("Promote version 2")
        path = f"/models/{MODEL}/aliases/champion"
        reason = "better on dev"
        self._curl(path, {"version": version, "reason": reason}, method="PUT")
        alias = self._client.promote(MODEL, version, reason=reason)
        self._console.line(f"    champion points to {MODEL}:{alias.version}")

    def _roll_back(self) -> None:
        self._console.heading("Roll back")
        reason = "a customer complained"
        self._curl(f"/models/{MODEL}/aliases/champion/rollback", {"reason": reason})
        alias = self._client.rollback(MODEL, reason=reason)
        self._console.line(f"    champion points to {MODEL}:{alias.version}")

    def _show_history(self) -> None:
        self._console.heading("Alias history: when, what and why")
        self._command(f"curl -s {self._url}/models/{MODEL}/aliases/champion/history")
        for move in self._client.history(MODEL):
            before = f"{MODEL}:{move.from_version}" if move.from_version else "(none)"
            self._console.line(
                f"    {move.seq}  {move.at:%Y-%m-%d %H:%M:%S}  {move.action:<9} {before} -> {MODEL}:{move.to_version}"
                f"  {move.reason or ''}".rstrip()
            )

    def _curl(self, path: str, body: dict[str, Any], method: str = "POST", *, shorten: bool = False) -> None:
        text = json.dumps(body, ensure_ascii=False)
        verb = "" if method == "POST" else f"-X {method} "
        shown = shlex.quote(_shortened(text, 150) if shorten else text)
        self._command(f"curl -s {verb}{self._url}{path} -H 'Content-Type: application/json' -d {shown}")

    def _command(self, text: str) -> None:
        self._console.line(f"  $ {text}")


def _unseen() -> list[_Sentence]:
    text = b"".join(generate("references", UNSEEN_SENTENCES, UNSEEN_SEED)).decode()
    blocks = [[line.split() for line in block.splitlines()] for block in text.strip().split("\n\n")]
    return [_Sentence([row[:-1] for row in block], [row[-1] for row in block]) for block in blocks]


def _version(job: Job) -> int:
    assert job.result is not None
    return int(job.result["version"])


def _f1(metrics: dict[str, Any]) -> str:
    dev = metrics.get("dev") or {}
    return f"{dev['f1']:.2f}" if "f1" in dev else "?"


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
