"""Calls about corpora, lexicons and features."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tagsmith.client.call import (
    Call,
    Pages,
    UploadSource,
    as_bytes,
    as_model,
    as_nothing,
    forced,
    given,
    path_of,
    upload_call,
)
from tagsmith.client.files import corpus_name
from tagsmith.wire import (
    CorpusInfo,
    CorpusInspection,
    CorpusSentence,
    CorpusStatistics,
    FeaturePreview,
    LexiconInfo,
    PresetInfo,
    TrainerInfo,
)

#: A sentence is a sequence of tokens, of rows of columns, or of objects of named attributes.
Sentence = Sequence[str] | Sequence[Sequence[str]] | Sequence[Mapping[str, Any]]


def upload(
    source: UploadSource,
    name: str | None = None,
    format: str | None = None,  # noqa: A002  # the name in the API
    options: Mapping[str, Any] | None = None,
    *,
    idempotency_key: str | None = None,
) -> Call[CorpusInfo]:
    """Upload a corpus from bytes or from a file; `.gz` and `.zst` files are sent as they are.

    The name is that of the file without suffixes. The server chooses the format if none is given. `options` are the
    options of the format.
    """
    params = _as_text(options) | given(format=format, name=name or _file_name(source))
    return upload_call("/corpora", CorpusInfo, source, params, idempotency_key)


def inspect(
    source: UploadSource,
    name: str | None = None,
    format: str = "auto",  # noqa: A002  # the name in the API
    options: Mapping[str, Any] | None = None,
) -> Call[CorpusInspection]:
    """Describe what `upload` would store: the recognised format, counts, first sentences, warnings. Stores nothing."""
    params = {"format": format, **_as_text(options), **given(name=name)}
    return upload_call("/corpora/inspect", CorpusInspection, source, params, None)


def corpora(*, name: str | None = None) -> Pages[CorpusInfo]:
    """List corpora, newest first; with `name`, the uploads under that name."""
    return Pages(CorpusInfo, "/corpora", given(name=name))


def corpus(corpus_id: str) -> Call[CorpusInfo]:
    """Get one corpus, by its id, its name (the newest upload) or `name:2`."""
    return Call("GET", path_of("corpora", corpus_id), as_model(CorpusInfo))


def report(corpus_id: str) -> Call[CorpusStatistics]:
    """Get the label counts, lengths, label faults and duplicates of a corpus."""
    return Call("GET", path_of("corpora", corpus_id, "report"), as_model(CorpusStatistics))


def sentences(
    corpus_id: str, *, offset: int = 0, limit: int = 20, label: str | None = None, faulty: bool = False
) -> Pages[CorpusSentence]:
    """List the sentences of a corpus from number `offset` on, fetching `limit` at a time.

    With `label`, only those with this label or type of span; with `faulty`, only those whose labels break their coding.
    """
    params = given(offset=offset, limit=limit, label=label, faulty="true" if faulty else None)
    return Pages(CorpusSentence, path_of("corpora", corpus_id, "sentences"), params, cursor="offset")


def content(
    corpus_id: str,
    format: str | None = None,  # noqa: A002  # the name in the API
    model: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Call[bytes]:
    """Get the text of a corpus as uploaded, or converted to a format; with `model`, labelled by that model."""
    params = {**_as_text(options), **given(format=format, model=model)}
    return Call("GET", path_of("corpora", corpus_id, "content"), as_bytes, params)


def delete_corpus(corpus_id: str, *, force: bool = False) -> Call[None]:
    """Delete a corpus; of a name, the newest upload. `force` also deletes one that a served version was trained on."""
    return Call("DELETE", path_of("corpora", corpus_id), as_nothing, forced(force=force))


def upload_lexicon(
    source: UploadSource,
    name: str | None = None,
    kind: str = "words",
    *,
    idempotency_key: str | None = None,
) -> Call[LexiconInfo]:
    """Upload a lexicon, as `upload` does a corpus. Uploading the same content again returns the stored lexicon."""
    params = {"kind": kind, **given(name=name or _file_name(source))}
    return upload_call("/lexicons", LexiconInfo, source, params, idempotency_key)


def lexicons() -> Pages[LexiconInfo]:
    """List all lexicons, newest first."""
    return Pages(LexiconInfo, "/lexicons")


def lexicon(lexicon_id: str) -> Call[LexiconInfo]:
    """Get one lexicon."""
    return Call("GET", path_of("lexicons", lexicon_id), as_model(LexiconInfo))


def lexicon_content(lexicon_id: str) -> Call[bytes]:
    """Get the text of a lexicon as uploaded, decompressed."""
    return Call("GET", path_of("lexicons", lexicon_id, "content"), as_bytes)


def delete_lexicon(lexicon_id: str) -> Call[None]:
    """Delete a lexicon. One that a job still needs cannot be deleted."""
    return Call("DELETE", path_of("lexicons", lexicon_id), as_nothing)


def preview(
    features: Mapping[str, Any], sentence: Sentence, corpus_id: str | None = None
) -> Call[FeaturePreview]:
    """Show the features of a sentence under a feature spec; with a corpus, also count the features of that corpus."""
    body = {"features": features, "sentence": sentence, "corpus": corpus_id}
    return Call("POST", "/features/preview", as_model(FeaturePreview), json=body, safe=True)


def trainers() -> Pages[TrainerInfo]:
    """List all trainers with their fields and defaults."""
    return Pages(TrainerInfo, "/trainers")


def presets() -> Pages[PresetInfo]:
    """List the presets of features."""
    return Pages(PresetInfo, "/presets")


def _as_text(options: Mapping[str, Any] | None) -> dict[str, str]:
    return {key: _text_of(value) for key, value in (options or {}).items()}


def _text_of(value: Any) -> str:
    """Return an option as the query has it: lists with commas, objects and truth values as JSON."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, (bool, Mapping)) else str(value)


def _file_name(source: UploadSource) -> str | None:
    return None if isinstance(source, bytes) else corpus_name(Path(source))
