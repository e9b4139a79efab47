"""Training and evaluation in one call: files are uploaded, and the spec is put together."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tagsmith.client.call import Call, given
from tagsmith.client.calls.corpora import upload
from tagsmith.client.calls.jobs import submit
from tagsmith.client.files import corpus_name, read_templates, templates_of
from tagsmith.wire import CorpusInfo, Job


def train(
    model: str | Mapping[str, Any],
    corpus: str | Path | None = None,
    *,
    dev: str | Path | float | Mapping[str, Any] | None = None,
    preset: str | None = None,
    templates: str | Path | Sequence[Any] | None = None,
    trainer: str | Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
    **options: Any,
) -> Generator[Call[Any], Any, Call[Job]]:
    """Start a job that trains a version of a model.

    - `model`: the name of the model. Instead of all parameters, this can be the spec of the job, posted as it is.
    - `corpus`: the path of a file, which is uploaded under its stem (`data/ner.conll` as `ner`), else a name or an id.
    - `dev`: a corpus to evaluate on after each pass, like `corpus`, or the fraction of the corpus to hold out for that.
    - `preset`: the name of a set of templates.
    - `templates`: templates as a list or text, or the path of a file with them, in the syntax of CRF++ or Wapiti.
    - `trainer`: the kind of a trainer, or its spec.
    - `options`: other fields of the spec, such as `seed`, `stop`, `promote`, `init`, and `features`, into which
      `preset` and `templates` are put.
    """
    if isinstance(model, Mapping):
        if corpus is not None:
            raise TypeError("The spec names the corpus. Give a spec, or the name of a model and a corpus.")
        return submit({"kind": "train", **model}, idempotency_key=idempotency_key)
    if corpus is None:
        raise TypeError("Give a corpus to train on: the path of a file, or the name or id of a corpus.")
    own = options.pop("features", {})
    features = {**own, **given(preset=preset), **_templates(templates), **given(syntax=own.get("syntax"))}
    spec = {
        "kind": "train",
        "model": model,
        "corpus": (yield from _corpus(corpus, _part(idempotency_key, "corpus"))),
        **({} if dev is None else {"dev": (yield from _dev(dev, _part(idempotency_key, "dev")))}),
        **({} if trainer is None else {"trainer": _trainer(trainer)}),
        **({"features": features} if features else {}),
        **options,
    }
    return _submitted(spec, idempotency_key)


def evaluate(
    models: str | Sequence[str],
    corpus_id: str | Path,
    *,
    idempotency_key: str | None = None,
    **options: Any,
) -> Generator[Call[Any], Any, Call[Job]]:
    """Start a job that scores versions on a corpus and tests their differences for significance.

    `models` is one reference or several. `corpus_id` is the path of a file, which is uploaded, else a name or an id.
    """
    spec = {
        "kind": "evaluate",
        "models": [models] if isinstance(models, str) else list(models),
        "corpus": (yield from _corpus(corpus_id, _part(idempotency_key, "corpus"))),
        **options,
    }
    return _submitted(spec, idempotency_key)


def _submitted(spec: Mapping[str, Any], key: str | None) -> Call[Job]:
    """Start the job. What the server does not know was not a file, or it would have been uploaded."""
    hints = {"corpus_not_found": "There is no file of this name either."}
    return replace(submit(spec, idempotency_key=key), hints=hints)


def _part(key: str | None, part: str) -> str | None:
    """The key of an upload within a call that has a key. Repeated, it gives the same corpus, and so the same spec."""
    return None if key is None else f"{key}-{part}"


def _corpus(corpus: str | Path, key: str | None) -> Generator[Call[CorpusInfo], CorpusInfo, str]:
    """Upload a file and return its id; return anything else as it is."""
    path = Path(corpus)
    if isinstance(corpus, str) and not path.is_file():
        if path.name != corpus:
            path.stat()  # no name has a slash, so this is a path, and a missing file is reported
        return corpus
    return (yield upload(path, corpus_name(path), idempotency_key=key)).id


def _dev(
    dev: str | Path | float | Mapping[str, Any], key: str | None
) -> Generator[Call[CorpusInfo], CorpusInfo, dict[str, Any]]:
    if isinstance(dev, Mapping):
        return dict(dev)
    if isinstance(dev, (int, float)):
        return {"fraction": dev}
    return {"corpus": (yield from _corpus(dev, key))}


def _templates(templates: str | Path | Sequence[Any] | None) -> dict[str, Any]:
    """Return the fields of the feature spec. The syntax of text is recognised."""
    if templates is None:
        return {}
    if isinstance(templates, str) and ("\n" in templates or not Path(templates).is_file()):
        return templates_of(templates)
    return (
        read_templates(Path(templates))
        if isinstance(templates, (str, Path))
        else {"templates": list(templates)}
    )


def _trainer(trainer: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": trainer} if isinstance(trainer, str) else dict(trainer)
