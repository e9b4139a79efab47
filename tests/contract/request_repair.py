"""Repairs generated requests beyond their schemas: they name things that exist, so that they get past lookups."""

import random
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from tagsmith.app.http.middleware import idempotency
from tagsmith.core.base.names import NAME_PATTERN
from tagsmith.core.corpus.formats import registry as formats

#: A reference to a corpus that a schema accepts.
CORPUS = r"[^\x00-\x1f\x7f]{1,220}"
#: Ids in bodies, with their prefix.
_ID = re.compile(r"(lex)_[0-9a-z]{1,64}")
#: Fields that name a version, by job kind. A body without a kind is a tagging request.
_REFERENCES = {"tag": "model", "rank": "model", "train": "init", None: "model"}
#: A header that depends on the present state, and the value that always matches.
CONDITION, ALWAYS = "If-Match", "*"
#: One in this many requests is not repaired, and one in this many repeats an idempotency key.
UNTOUCHED, REPEATED = 4, 16
#: Minimum time limit of a job, so that it does some work.
MIN_JOB_S = 1.0


class RequestRepair:
    """Replaces names of things that do not exist by names of things that do."""

    def __init__(
        self, ids: Mapping[str, Sequence[str]], models: Sequence[str], references: Sequence[str]
    ) -> None:
        #: By prefix.
        self._ids = ids
        self.models = models
        #: References to different versions.
        self._references = references
        #: Seeded, so that equal runs make equal choices.
        self._random = random.Random(1)
        self._fresh = 0

    def body(self, body: Any) -> Any:
        """Repair most bodies. Equal bodies give equal results."""
        number = _number(body)
        if number % UNTOUCHED == 0:
            return body
        return self._job(self._value(body, number), number) if isinstance(body, dict) else body

    def may(self, untouched: int = UNTOUCHED) -> bool:
        """Whether to repair this request."""
        return self._random.randrange(untouched) != 0

    def headers(self, headers: Any) -> None:
        """Make most conditions match, and most idempotency keys new."""
        if CONDITION in headers and self.may():
            headers[CONDITION] = ALWAYS
        key = headers.get(idempotency.HEADER)
        if isinstance(key, str) and re.fullmatch(idempotency.PATTERN, key) and self.may(REPEATED):
            self._fresh += 1
            headers[idempotency.HEADER] = f"{self._fresh}-{key}"[:255]

    def query(self, query: Any) -> None:
        """Remove options of other formats from most requests."""
        models = formats.option_models()
        own = models.get(query["format"]) if isinstance(query.get("format"), str) else None
        if own is None or not self.may():
            return
        options = {name for model in models.values() for name in model.model_fields}
        for name in (options - own.model_fields.keys()) & query.keys():
            del query[name]

    def path(self, parameters: Any) -> None:
        """Make most paths name an existing model."""
        if (
            isinstance(name := parameters.get("name"), str)
            and re.fullmatch(NAME_PATTERN, name)
            and self.may()
        ):
            parameters["name"] = self._random.choice(self.models)

    def _value(self, value: Any, number: int) -> Any:
        if isinstance(value, list):
            return [self._value(each, number) for each in value]
        if isinstance(value, dict):
            fields = {name: self._value(each, number) for name, each in value.items()}
            if isinstance(fields.get("corpus"), str) and re.fullmatch(CORPUS, fields["corpus"]):
                fields["corpus"] = _choose(self._ids["crp"], number)
            if fields.get("templates") is not None and fields.get("preset") is not None:
                # Only one of the two is allowed.
                fields.pop(("templates", "preset")[number % 2])
            return fields
        found = _ID.fullmatch(value) if isinstance(value, str) else None
        return value if found is None else _choose(self._ids[found[1]], number)

    def _job(self, body: dict[Any, Any], number: int) -> dict[Any, Any]:
        """Make a job use existing versions, with enough time to do some work."""
        kind, time_s = body.get("kind"), body.get("max_seconds")
        if isinstance(time_s, float) and 0 < time_s < MIN_JOB_S:
            body = {**body, "max_seconds": MIN_JOB_S}
        field = _REFERENCES.get(kind) if isinstance(kind, str | None) else None
        if field is not None and isinstance(body.get(field), str):
            return {**body, field: _choose(self._references, number)}
        named = body.get("models")
        if kind == "evaluate" and isinstance(named, list) and 0 < len(named) <= len(self._references):
            return {**body, "models": list(self._references[: len(named)])}
        return body


def _number(value: Any) -> int:
    return zlib.crc32(repr(value).encode("utf-8", "backslashreplace"))


def _choose(choices: Sequence[str], number: int) -> str:
    return choices[number // UNTOUCHED % len(choices)]
