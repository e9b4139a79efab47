"""What schemathesis is told about this service. Loaded by its command line, in a process of its own."""

import atexit
import functools
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import schemathesis
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import RejectedPositiveData
from schemathesis.transport.serialization import Binary

from tagsmith.core.corpus.synthetic.generate import generate
from tests.contract.mending import Mender

#: Where the tallies go: a run in which nothing was ever accepted would prove little.
TALLY = "CONTRACT_TALLY"
#: The id of the key that the run shows.
KEY_ID = "CONTRACT_KEY_ID"
#: Where a model file is, to be imported.
ARTIFACT = "CONTRACT_ARTIFACT"
#: Where the names of what there is are.
NAMES = "CONTRACT_NAMES"

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
        *("invalid_attribute", "template_not_expressible", "unwritable_value", "unlabelled_corpus"),
        *("not_labelled", "wrong_lexicon_kind", "corpora_differ", "corpus_too_small", "unknown_label_coding"),
        # NUL, which no text may have.
        *("nul_character", "invalid_address"),
    }
)
#: Codes of validation by the schemas of the document. Validators that compare fields are beyond schemas: their
#: messages are sentences of this project, which end in a full stop, as pydantic's messages do not.
BY_SCHEMAS = frozenset({"invalid_spec", "invalid_request"})
#: Messages about values that the schema lists, which this project words too.
LISTED = "Unknown "
COMPARING = (
    "has a meaning only with ",
    "there is no token ",
    "tags are fixed for tokens of sentences",
)
COMPARED = ("/search/fields",)

#: Uploads whose every other body is replaced by one that can be read: what is generated never can.
UPLOADS = {"POST /corpora", "POST /lexicons", "POST /models/{name}/versions"}


@dataclass(slots=True)
class Tally:
    """What was asked of an operation."""

    #: How often each status was answered.
    answers: Counter[str] = field(default_factory=Counter)
    #: For answers.
    waited_s: float = 0.0
    #: In all, so also to make requests and to check answers.
    spent_s: float = 0.0


_tallies: defaultdict[str, Tally] = defaultdict(Tally)
_last = time.monotonic()


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
    detail = str(place["detail"])
    own_sentence = detail.endswith(".") and not detail.startswith(LISTED)
    return own_sentence or detail.startswith(COMPARING) or place.get("pointer", "").startswith(COMPARED)


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Let every other upload be what it should be."""
    name = context.operation.label
    return _uploaded(name, body, lambda content: len(content) % 2 == 1) if name in UPLOADS else body


def _uploaded(operation: str, body: Any, wanted: Callable[[Any], bool]) -> Any:
    """The body, with content that can be read in the place of content of which that is wanted."""
    if isinstance(body, dict):
        return {**body, "file": _uploaded(operation, body["file"], wanted)} if "file" in body else body
    content = body.data if isinstance(body, Binary) else body
    if not isinstance(content, (str, bytes)) or not wanted(content):
        return body
    if operation.endswith("/versions"):
        return Binary(Path(os.environ[ARTIFACT]).read_bytes())
    text = b"".join(generate("references", 2, len(content)))
    return text.decode() if isinstance(body, str) else Binary(text)


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
    """Mend what no schema can say, and keep the key of the run from being revoked, which would end it in silence."""
    mender, operation = _mender(), case.operation.label
    # Here one path, query and upload is made for all the cases of an operation; elsewhere each has its own.
    fixed = case.meta is not None and case.meta.phase.name == TestPhase.COVERAGE
    if operation in UPLOADS:
        # A body that is set is validated again, and bytes in a form would be taken for no string: those stay.
        if fixed and not isinstance(case.body, dict):
            case.body = _uploaded(operation, case.body, lambda _: mender.may())
    elif isinstance(case.body, dict):
        case.body = mender.body(case.body)
    mender.headers(case.headers or {})
    mender.query(case.query or {})
    given = case.path_parameters or {}
    if fixed:
        mender.path(given)
    if operation == "DELETE /keys/{key_id}" and given.get("key_id") == os.environ.get(KEY_ID):
        given["key_id"] = "key_of_the_run"


@functools.cache
def _mender() -> Mender:
    return Mender(**orjson.loads(Path(os.environ[NAMES]).read_bytes()))


@schemathesis.hook
def after_call(_context: Any, case: Any, response: Any) -> None:
    """Count the answer, and the time since the one before."""
    global _last  # noqa: PLW0603  # schemathesis has no other place for it
    now = time.monotonic()
    tally = _tallies[case.operation.label]
    tally.answers[str(response.status_code)] += 1
    tally.waited_s += response.elapsed
    tally.spent_s += now - _last
    _last = now


@atexit.register
def _write() -> None:
    if path := os.environ.get(TALLY):
        Path(path).write_bytes(orjson.dumps(_tallies, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
