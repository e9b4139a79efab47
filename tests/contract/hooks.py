"""What schemathesis is told about this service. Loaded by its command line, in a process of its own."""

import atexit
import os
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import schemathesis
from schemathesis.openapi.checks import RejectedPositiveData
from schemathesis.transport.serialization import Binary

from core.corpus.generate import generate

#: Where the counts of answers go: a run in which nothing was ever accepted would prove little.
TALLY = "CONTRACT_TALLY"
#: The id of the key that the run shows.
KEY_ID = "CONTRACT_KEY_ID"
#: Where a model file is, to be imported.
ARTIFACT = "CONTRACT_ARTIFACT"

#: What a request that fits the document may be refused for all the same, because no schema can say it.
BEYOND_SCHEMAS = frozenset(
    {
        # Names, within bodies and queries, of what there is not.
        *("corpus_not_found", "model_not_found", "version_not_found", "lexicon_not_found", "move_not_found"),
        *("unknown_label", "unknown_template", "unknown_before"),
        # Cursors are opaque, and entity tags are of one moment.
        *("invalid_cursor", "alias_moved", "policy_changed"),
        # Files in languages of their own.
        *("empty_corpus", "invalid_corpus", "invalid_archive", "label_faults", "not_segmented"),
        *(
            "empty_lexicon",
            "invalid_lexicon",
            "corrupt_model",
            "not_utf8",
            "no_file_part",
            "invalid_template",
        ),
        # Options of one format with another, columns and labels that a model or a corpus has not.
        *("invalid_options", "missing_column", "mixed_tokens", "text_not_supported", "unwritable_token"),
        *("invalid_attribute", "unsayable_template", "unwritable_value", "unlabelled_corpus", "not_labelled"),
        *("wrong_lexicon_kind", "corpora_differ", "corpus_too_small"),
        # NUL, which no text may have.
        *("nul_character", "invalid_address"),
    }
)
#: Codes of validation by the very schemas of the document. What compares fields with each other is beyond those: it
#: begins so, or is said of fields that are checked by what they stand for.
BY_SCHEMAS = frozenset({"invalid_spec", "invalid_request"})
COMPARING = (
    "Value error, ",
    "this row has ",
    "patience waits for ",
    "has a meaning only with ",
    "there is no token ",
)
COMPARED = ("/search/fields",)

#: Uploads whose every other body is replaced by one that can be read: what is generated never can.
UPLOADS = {"POST /corpora", "POST /lexicons", "POST /models/{name}/versions"}

_tally: Counter[str] = Counter()


@schemathesis.hook
def filter_failure(_context: Any, failure: Any, case: Any, response: Any) -> bool:
    """Keep a failure, unless valid data was refused for what a schema cannot say."""
    if not isinstance(failure, RejectedPositiveData):
        return True
    problem = response.json()
    return not (
        problem["code"] in BEYOND_SCHEMAS
        or (problem["code"] in BY_SCHEMAS and all(map(_compares, problem["errors"])))
    )


def _compares(place: dict[str, Any]) -> bool:
    return place["detail"].startswith(COMPARING) or place.get("pointer", "").startswith(COMPARED)


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Let every other upload be what it should be."""
    name = context.operation.label
    if name not in UPLOADS:
        return body
    if isinstance(body, dict):
        return {**body, "file": _upload(name, body["file"])} if "file" in body else body
    return _upload(name, body)


def _upload(operation: str, given: Any) -> Any:
    size = len(given.data if isinstance(given, Binary) else given) if isinstance(given, (str, bytes)) else 0
    if size % 2 == 0:
        return given
    if operation.endswith("/versions"):
        return Binary(Path(os.environ[ARTIFACT]).read_bytes())
    text = b"".join(generate("references", 2, size))
    return Binary(text) if isinstance(given, Binary) else text.decode()


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    """Keep the key of the run from being revoked, which would end it without a word."""
    given = case.path_parameters or {}
    if case.operation.label == "DELETE /keys/{key_id}" and given.get("key_id") == os.environ.get(KEY_ID):
        given["key_id"] = "key_of_the_run"


@schemathesis.hook
def after_call(_context: Any, case: Any, response: Any) -> None:
    """Count answers."""
    _tally[f"{case.operation.label} {response.status_code}"] += 1


@atexit.register
def _write() -> None:
    if path := os.environ.get(TALLY):
        Path(path).write_bytes(orjson.dumps(_tally, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
