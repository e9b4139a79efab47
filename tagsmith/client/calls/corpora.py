"""Calls about corpora, lexicons and features."""

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
    given,
    path_of,
    upload_call,
)
from tagsmith.wire import CorpusInfo, CorpusStatistics, FeaturePreview, LexiconInfo

#: A sentence is a sequence of tokens, of rows of columns, or of objects of named attributes.
Sentence = Sequence[str] | Sequence[Sequence[str]] | Sequence[Mapping[str, Any]]


def upload(
    source: UploadSource,
    name: str | None = None,
    format: str | None = None,  # noqa: A002  # the name in the API
    options: Mapping[str, str | int] | None = None,
    *,
    idempotency_key: str | None = None,
) -> Call[CorpusInfo]:
    """Upload a corpus from bytes or from a file; `.gz` and `.zst` files are sent as they are.

    The server chooses the format if none is given. `options` are the options of the format.
    """
    params = {key: str(value) for key, value in (options or {}).items()}
    params |= given(format=format, name=name or _file_name(source))
    return upload_call("/corpora", CorpusInfo, source, params, idempotency_key)


def corpora() -> Pages[CorpusInfo]:
    """List all corpora, newest first."""
    return Pages(CorpusInfo, "/corpora")


def corpus(corpus_id: str) -> Call[CorpusInfo]:
    """Get one corpus."""
    return Call("GET", path_of("corpora", corpus_id), as_model(CorpusInfo))


def report(corpus_id: str) -> Call[CorpusStatistics]:
    """Get the label counts, lengths, label faults and duplicates of a corpus."""
    return Call("GET", path_of("corpora", corpus_id, "report"), as_model(CorpusStatistics))


def content(
    corpus_id: str,
    format: str | None = None,  # noqa: A002  # the name in the API
    model: str | None = None,
    options: Mapping[str, str | int] | None = None,
) -> Call[bytes]:
    """Get the text of a corpus as uploaded, or converted to a format; with `model`, labelled by that model."""
    params = {key: str(value) for key, value in (options or {}).items()}
    params |= given(format=format, model=model)
    return Call("GET", path_of("corpora", corpus_id, "content"), as_bytes, params)


def delete_corpus(corpus_id: str) -> Call[None]:
    """Delete a corpus."""
    return Call("DELETE", path_of("corpora", corpus_id), as_nothing)


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


def _file_name(source: UploadSource) -> str | None:
    return None if isinstance(source, bytes) else Path(source).name
