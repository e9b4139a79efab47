"""`tagsmith demo`: the whole path once, in a throw-away stack, with the curl line of every call."""

import json
import shlex
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.cli.background import BackgroundStack
from app.cli.console import Console
from app.client import Client, Job, Tagged
from core.corpus.generate import generate
from core.errors import Unavailable
from core.settings import Settings

MODEL = "refs"
#: Other seeds than the corpus has, so that the demo tags sentences the models never saw.
CORPUS_SEED, UNSEEN_SEED = 1, 2
SHOWN_SENTENCES = 3
#: An alias move reaches every API process within two seconds.
FOLLOW_DEADLINE_S = 5.0

#: Words and their neighbours only: a first version to improve on.
WORDS_ONLY = "U00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[1,0]\nB"
FIRST_SPEC: dict[str, Any] = {
    "features": {"templates": WORDS_ONLY},
    "trainer": {"kind": "sgd-l1", "l1": 1.0, "passes": 10},
    "promote": "champion",
}
SECOND_SPEC: dict[str, Any] = {
    "features": {"preset": "generic"},
    "trainer": {"kind": "sgd-l1", "l1": 0.3, "passes": 20},
}


def run(sentences: int) -> int:
    """Play the demo, and give the exit code."""
    console = Console()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tagsmith-demo-") as folder:
        settings = Settings.from_env({}, {"port": 0, "data_dir": Path(folder) / "data"})
        console.heading("Starting a private stack: SQLite, Redis, one worker, the API")
        console.line("  (the first start on a machine compiles the kernels, which takes a minute or so)")
        stack = BackgroundStack(settings)
        with stack, Client(stack.url) as client:
            console.line(f"  ready at {stack.url} after {time.monotonic() - began:.1f} s")
            _Demo(console, client, stack.url, Path(folder)).play(sentences)
            console.heading("Stopping everything")
    console.line(f"  done in {time.monotonic() - began:.1f} s. `make up` keeps such a stack running.")
    return 0


class _Demo:
    def __init__(self, console: Console, client: Client, url: str, folder: Path) -> None:
        self._console = console
        self._client = client
        self._url = url
        self._folder = folder

    def play(self, sentences: int) -> None:
        corpus_id = self._upload(sentences)
        unseen = list(_read(b"".join(generate("references", SHOWN_SENTENCES, UNSEEN_SEED))))
        first = self._train(
            "Train version 1 on words alone, and let `champion` stand for it", corpus_id, FIRST_SPEC
        )
        self._tag("Tag references that are not in the corpus", unseen, expected=_version(first))
        second = self._train("Train version 2 with affixes, shapes and classes", corpus_id, SECOND_SPEC)
        self._promote(_version(second))
        self._tag("The same call is now answered by version 2", unseen, expected=_version(second))
        self._roll_back()
        self._tag("One call later version 1 answers again", unseen[:1], expected=_version(first))
        self._show_history()

    def _upload(self, sentences: int) -> str:
        path = self._folder / "refs.conll"
        self._console.heading("Make a labelled corpus and upload it")
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
        for event in self._client.follow(job.id):
            if event.type in ("progress", "pass"):
                self._show_progress(event.data, keep=event.type == "pass")
        self._console.clear_bar()
        job = self._client.job(job.id)
        if job.state != "succeeded":
            raise Unavailable(f"{job.id} {job.state}: {job.error}", code="demo_failed")
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
        self._console.bar(progress.get("fraction") or 0.0, text)
        # Without a terminal the curve is still worth a few lines.
        if keep and not self._console.is_terminal and (number == passes or number % 5 == 1):
            self._console.line(f"    {text}")

    def _tag(self, heading: str, sentences: list[list[list[str]]], expected: int) -> None:
        self._console.heading(heading)
        self._curl("/tag", {"model": MODEL, "sentences": sentences[:1]}, shorten=True)
        end = time.monotonic() + FOLLOW_DEADLINE_S
        tagged = self._client.tag(MODEL, sentences)
        while tagged.version != expected and time.monotonic() < end:
            time.sleep(0.05)
            tagged = self._client.tag(MODEL, sentences)
        if tagged.version != expected:
            raise Unavailable(f"version {tagged.version} answered, not {expected}", code="demo_failed")
        self._show(tagged, sentences)

    def _show(self, tagged: Tagged, sentences: list[list[list[str]]]) -> None:
        for sentence, tags in zip(sentences, tagged.tags, strict=True):
            words = " ".join(f"{row[0]}/{tag}" for row, tag in zip(sentence, tags, strict=True))
            self._console.line(f"    {tagged.model}:{tagged.version}  {_shortened(words, 160)}")

    def _promote(self, version: int) -> None:
        self._console.heading("Promote version 2")
        path = f"/models/{MODEL}/aliases/champion"
        reason = "better on dev"
        self._curl(path, {"version": version, "reason": reason}, method="PUT")
        alias = self._client.promote(MODEL, version, reason=reason)
        self._console.line(f"    champion stands for {MODEL}:{alias.version}")

    def _roll_back(self) -> None:
        self._console.heading("Roll back")
        reason = "a customer complained"
        self._curl(f"/models/{MODEL}/aliases/champion/rollback", {"reason": reason})
        alias = self._client.rollback(MODEL, reason=reason)
        self._console.line(f"    champion stands for {MODEL}:{alias.version}")

    def _show_history(self) -> None:
        self._console.heading("Who moved what, when and why")
        self._command(f"curl -s {self._url}/models/{MODEL}/aliases/champion/history")
        for move in self._client.history(MODEL):
            before = f"{MODEL}:{move.from_version}" if move.from_version else "nothing"
            self._console.line(
                f"    {move.seq}  {move.at}  {move.action:<9} {before} -> {MODEL}:{move.to_version}"
                f"  {move.reason or ''}".rstrip()
            )

    def _curl(self, path: str, body: dict[str, Any], method: str = "POST", *, shorten: bool = False) -> None:
        text = json.dumps(body, ensure_ascii=False)
        verb = "" if method == "POST" else f"-X {method} "
        shown = shlex.quote(_shortened(text, 150) if shorten else text)
        self._command(f"curl -s {verb}{self._url}{path} -H 'Content-Type: application/json' -d {shown}")

    def _command(self, text: str) -> None:
        self._console.line(f"  $ {text}")


def _read(text: bytes) -> Iterator[list[list[str]]]:
    """Give each sentence of labelled text as rows of attribute columns, without the labels."""
    for block in text.decode().strip().split("\n\n"):
        yield [line.split()[:-1] for line in block.splitlines()]


def _version(job: Job) -> int:
    assert job.result is not None
    return int(job.result["version"])


def _f1(metrics: dict[str, Any]) -> str:
    dev = metrics.get("dev") or {}
    return f"{dev['f1']:.2f}" if "f1" in dev else "?"


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
