"""A typed client of the HTTP API, and an example of how to call it: nothing goes around the wire.

`corpus = client.upload(Path("train.conll.gz"))`, `job = client.train({"corpus": corpus.id, ...})`,
`for event in client.follow(job.id)`, `client.tag("chunker", [["He", "reckons"]]).tags`.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from app.connection import ApiError, Connection, part
from app.records import (
    TERMINAL,
    Alias,
    Corpus,
    Event,
    Job,
    Lexicon,
    Model,
    Move,
    Policy,
    Preview,
    RetentionPlan,
    Tagged,
    Template,
    Version,
    make,
)

__all__ = [
    "Alias", "ApiError", "Client", "Corpus", "Event", "Job", "Lexicon", "Model", "Move", "Policy", "Preview",
    "RetentionPlan", "Tagged", "Template", "Version",
]  # fmt: skip

#: How long `follow` keeps trying to reach a server that is away, and how long it waits between tries.
PATIENCE_S = 60.0
RETRY_S = 0.5

Sentence = Sequence[str] | Sequence[Sequence[str]]


class Client(Connection):
    """Calls a Tagsmith server. Use it as a context manager, or close it."""

    # Corpora

    def upload(
        self,
        source: Path | str | bytes,
        name: str | None = None,
        format: str = "conll",  # noqa: A002  # the contract's name for it
        options: Mapping[str, str | int] | None = None,
    ) -> Corpus:
        """Upload a corpus from bytes or from a file; `.gz` and `.zst` files go as they are.

        `options` are those of the format.
        """
        params = {"format": format, **{key: str(value) for key, value in (options or {}).items()}}
        return make(Corpus, self._upload("/corpora", source, name, params))

    def corpora(self) -> Iterator[Corpus]:
        """List all corpora, newest first."""
        return self._pages(Corpus, "/corpora")

    def corpus(self, corpus_id: str) -> Corpus:
        """Give one corpus."""
        return make(Corpus, self._call("GET", f"/corpora/{part(corpus_id)}"))

    def report(self, corpus_id: str) -> dict[str, Any]:
        """Give what was counted in a corpus."""
        return dict(self._call("GET", f"/corpora/{part(corpus_id)}/report"))

    def content(
        self,
        corpus_id: str,
        format: str | None = None,  # noqa: A002  # the contract's name for it
        model: str | None = None,
        options: Mapping[str, str | int] | None = None,
    ) -> bytes:
        """Give the text of a corpus as it came, or in a format, with the labels that a model gives to it."""
        params = {key: str(value) for key, value in (options or {}).items()}
        params |= {key: value for key, value in (("format", format), ("model", model)) if value}
        return self._response("GET", f"/corpora/{part(corpus_id)}/content", params=params).content

    def delete_corpus(self, corpus_id: str) -> None:
        """Remove a corpus."""
        self._response("DELETE", f"/corpora/{part(corpus_id)}")

    # Lexicons

    def upload_lexicon(
        self, source: Path | str | bytes, name: str | None = None, kind: str = "words"
    ) -> Lexicon:
        """Upload a lexicon as `upload` does a corpus; the same one again gives what is there already."""
        return make(Lexicon, self._upload("/lexicons", source, name, {"kind": kind}))

    def lexicons(self) -> Iterator[Lexicon]:
        """List all lexicons, newest first."""
        return self._pages(Lexicon, "/lexicons")

    def lexicon(self, lexicon_id: str) -> Lexicon:
        """Give one lexicon."""
        return make(Lexicon, self._call("GET", f"/lexicons/{part(lexicon_id)}"))

    def lexicon_content(self, lexicon_id: str) -> bytes:
        """Give the text of a lexicon as it came, decompressed."""
        return self._response("GET", f"/lexicons/{part(lexicon_id)}/content").content

    def delete_lexicon(self, lexicon_id: str) -> None:
        """Remove a lexicon; not one that a job still needs."""
        self._response("DELETE", f"/lexicons/{part(lexicon_id)}")

    # Features

    def preview(
        self, features: Mapping[str, Any], sentence: Sentence, corpus_id: str | None = None
    ) -> Preview:
        """Show the features that a spec makes of a sentence; with a corpus, also what that would produce."""
        body = {"features": features, "sentence": sentence, "corpus": corpus_id}
        return make(Preview, self._call("POST", "/features/preview", json=body))

    # Jobs

    def train(self, spec: Mapping[str, Any]) -> Job:
        """Start a training job."""
        return make(Job, self._call("POST", "/jobs", json={"kind": "train", **spec}))

    def compare(self, spec: Mapping[str, Any]) -> Job:
        """Start a job that compares trainers."""
        return make(Job, self._call("POST", "/jobs", json={"kind": "compare", **spec}))

    def tune(self, spec: Mapping[str, Any]) -> Job:
        """Start a job that searches for the best spec."""
        return make(Job, self._call("POST", "/jobs", json={"kind": "tune", **spec}))

    def evaluate(self, models: Sequence[str], corpus_id: str, **options: Any) -> Job:
        """Start a job that scores versions on a corpus and says whether they differ by more than chance."""
        body = {"kind": "evaluate", "models": list(models), "corpus": corpus_id, **options}
        return make(Job, self._call("POST", "/jobs", json=body))

    def tag_corpus(self, model: str, corpus_id: str, **options: Any) -> Job:
        """Start a job that labels a corpus with a version; `output` gives what it wrote."""
        body = {"kind": "tag", "model": model, "corpus": corpus_id, **options}
        return make(Job, self._call("POST", "/jobs", json=body))

    def output(self, job_id: str) -> bytes:
        """Give the corpus that a finished job wrote."""
        return self._response("GET", f"/jobs/{part(job_id)}/output").content

    def table(self, job_id: str) -> str:
        """Give the table of a finished job as CSV."""
        return self._response("GET", f"/jobs/{part(job_id)}/table.csv").text

    def plot(self, job_id: str) -> str:
        """Give the learning curves of a finished job as SVG."""
        return self._response("GET", f"/jobs/{part(job_id)}/plot.svg").text

    def jobs(self, *, state: str | None = None, model: str | None = None) -> Iterator[Job]:
        """List jobs, newest first."""
        return self._pages(Job, "/jobs", {"state": state, "model": model})

    def job(self, job_id: str) -> Job:
        """Give a job as it stands."""
        return make(Job, self._call("GET", f"/jobs/{part(job_id)}"))

    def cancel(self, job_id: str) -> Job:
        """Ask a job to stop."""
        return self._ask(job_id, "cancel")

    def pause(self, job_id: str) -> Job:
        """Ask a job to store a checkpoint and stand still."""
        return self._ask(job_id, "pause")

    def resume(self, job_id: str) -> Job:
        """Let a paused job go on."""
        return self._ask(job_id, "resume")

    def retry(self, job_id: str) -> Job:
        """Start a new job with the spec of one that failed or was cancelled."""
        return self._ask(job_id, "retry")

    def _ask(self, job_id: str, wish: str) -> Job:
        return make(Job, self._call("POST", f"/jobs/{part(job_id)}/{wish}"))

    def events(self, job_id: str, *, after: int = 0) -> list[Event]:
        """List what has happened to a job since event `after`."""
        found: list[Event] = []
        while True:
            page = self._call("GET", f"/jobs/{part(job_id)}/events", params={"after": after})
            found += [make(Event, item) for item in page["data"]]
            if page["next_cursor"] is None:
                return found
            after = int(page["next_cursor"])

    def follow(self, job_id: str, *, after: int = 0) -> Iterator[Event]:
        """Give each event once, in order, as it happens, and end when the job has ended.

        A lost connection is taken up again where it broke.
        """
        lost_at: float | None = None
        while True:
            try:
                for event in self._stream(job_id, after):
                    lost_at = None
                    if event.seq is not None:
                        after = event.seq
                    yield event
                    if event.type == "state" and event.data.get("state") in TERMINAL:
                        return
                if self.job(job_id).done and not self.events(job_id, after=after):
                    return
            except httpx.TransportError:
                lost_at = lost_at or time.monotonic()
                if time.monotonic() - lost_at > PATIENCE_S:
                    raise
            time.sleep(RETRY_S)

    def wait(self, job_id: str) -> Job:
        """Wait until a job has ended, and give it."""
        for _ in self.follow(job_id):
            pass
        return self.job(job_id)

    # Models

    def models(self) -> Iterator[Model]:
        """List all models."""
        return self._pages(Model, "/models")

    def model(self, name: str) -> Model:
        """Give one model."""
        return make(Model, self._call("GET", f"/models/{part(name)}"))

    def versions(self, name: str) -> Iterator[Version]:
        """List the versions of a model, newest first."""
        return self._pages(Version, f"/models/{part(name)}/versions")

    def version(self, name: str, number: int) -> Version:
        """Give one version."""
        return make(Version, self._call("GET", f"/models/{part(name)}/versions/{number}"))

    def artifact(self, name: str, number: int) -> bytes:
        """Give the model file of a version."""
        return self._response("GET", f"/models/{part(name)}/versions/{number}/artifact").content

    def import_model(self, name: str, artifact: bytes, format: str | None = None) -> Version:  # noqa: A002
        """Publish a model file, of ours or of another program, as the next version of a model."""
        path = f"/models/{part(name)}/versions"
        params = {} if format is None else {"format": format}
        return make(Version, self._call("POST", path, params=params, content=artifact))

    def templates(self, name: str, number: int) -> list[Template]:
        """List what each template has in a version, those that were dropped last."""
        return list(self._pages(Template, f"/models/{part(name)}/versions/{number}/templates"))

    def template_plot(self, name: str, number: int) -> str:
        """Give the templates of a version as SVG: norms and, where they were selected, when each was kept."""
        return self._response("GET", f"/models/{part(name)}/versions/{number}/templates.svg").text

    def compare_versions(self, name: str, base: int, head: int, *, top: int = 20) -> dict[str, Any]:
        """Say what differs between two versions: metrics, spec, weights."""
        params = {"base": base, "head": head, "top": top}
        return dict(self._call("GET", f"/models/{part(name)}/compare", params=params))

    def delete_version(self, name: str, number: int) -> None:
        """Remove a version; not one that an alias stands for."""
        self._response("DELETE", f"/models/{part(name)}/versions/{number}")

    def aliases(self, name: str) -> list[Alias]:
        """List the aliases of a model."""
        return list(self._pages(Alias, f"/models/{part(name)}/aliases"))

    def alias(self, name: str, alias: str, *, at: str | None = None) -> Alias:
        """Give what an alias stands for now, or stood for at a time."""
        return make(Alias, self._call("GET", _alias(name, alias), params={} if at is None else {"at": at}))

    def promote(
        self,
        name: str,
        version: int,
        alias: str = "champion",
        *,
        reason: str | None = None,
        if_match: int | str | None = None,
        force: bool = False,
    ) -> Alias:
        """Let an alias stand for a version; with `if_match` (a `seq`) only if nobody moved it meanwhile.

        `force` does so against the policy of the model, and needs a reason.
        """
        body = {"version": version, "reason": reason, "force": force}
        return make(Alias, self._call("PUT", _alias(name, alias), json=body, headers=_if_match(if_match)))

    def rollback(
        self,
        name: str,
        alias: str = "champion",
        *,
        reason: str | None = None,
        steps: int | None = None,
        to: int | str | None = None,
    ) -> Alias:
        """Take an alias back to what it stood for before, so many steps, or to a move or a time."""
        body = {"reason": reason, "steps": steps, "to": to}
        return make(Alias, self._call("POST", _alias(name, alias) + "/rollback", json=body))

    def history(self, name: str, alias: str = "champion") -> list[Move]:
        """List the moves of an alias, newest first."""
        return list(self._pages(Move, _alias(name, alias) + "/history"))

    def policy(self, name: str) -> Policy:
        """Give the policy of a model."""
        return make(Policy, self._call("GET", _policy(name)))

    def set_policy(
        self,
        name: str,
        promotion: Mapping[str, Any] | None = None,
        retention: Mapping[str, Any] | None = None,
        *,
        if_match: int | str | None = None,
    ) -> Policy:
        """Give a model its policy, in place of the whole of the one it has."""
        body = {"promotion": promotion, "retention": retention}
        return make(Policy, self._call("PUT", _policy(name), json=body, headers=_if_match(if_match)))

    def delete_policy(self, name: str, *, if_match: int | str | None = None) -> None:
        """Remove the policy of a model."""
        self._response("DELETE", _policy(name), headers=_if_match(if_match))

    def retention(
        self, name: str, *, keep_last: int | None = None, keep_rollbacks: int | None = None
    ) -> RetentionPlan:
        """Say which versions would be removed by the policy, or by what is given instead; removes nothing."""
        asked = {"keep_last": keep_last, "keep_rollbacks": keep_rollbacks}
        params = {key: value for key, value in asked.items() if value is not None}
        return make(RetentionPlan, self._call("GET", f"/models/{part(name)}/retention", params=params))

    # Tagging and health

    def tag(self, model: str, sentences: Sequence[Sentence], output: str = "tags", **options: Any) -> Tagged:
        """Tag sentences; each a list of tokens, or of rows of columns. `options` are further fields of the request."""
        body = {"model": model, "sentences": sentences, "output": output, **options}
        return make(Tagged, self._call("POST", "/tag", json=body))

    def ready(self) -> bool:
        """Whether the server can be reached and is ready to serve."""
        try:
            return self._http.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def server_version(self) -> dict[str, Any]:
        """Give which code the server runs."""
        return dict(self._call("GET", "/version"))


def _alias(name: str, alias: str) -> str:
    return f"/models/{part(name)}/aliases/{part(alias)}"


def _policy(name: str) -> str:
    return f"/models/{part(name)}/policy"


def _if_match(seq: int | str | None) -> dict[str, str]:
    return {} if seq is None else {"If-Match": "*" if seq == "*" else f'"{seq}"'}
