"""Requests mended in what no schema can say, so that what else they say is looked at, and jobs are really done."""

import random
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from tagsmith.app.http.middleware import idempotency
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.registry.names import NAME_PATTERN

#: A reference to a corpus that a schema accepts.
CORPUS = r"[^\x00-\x1f\x7f]{1,220}"
#: How the names of things begin that bodies name by an id.
_ID = re.compile(r"(lex)_[0-9a-z]{1,64}")
#: Fields that name a version, by the kind of a job; what has no kind is to be tagged at once.
_REFERENCES = {"tag": "model", "train": "init", None: "model"}
#: A header whose value is of one moment, and the value that is of all.
CONDITION, ALWAYS = "If-Match", "*"
#: One request in so many is sent as it was made, and one in so many with the key of another.
UNTOUCHED, REPEATED = 4, 16
#: What a job gets that has less time than this, in seconds: enough to do something.
LEAST_S = 1.0


class Mender:
    """Puts names of what there is in the place of names of what there is not."""

    def __init__(
        self, ids: Mapping[str, Sequence[str]], models: Sequence[str], references: Sequence[str]
    ) -> None:
        #: By how they begin.
        self._ids = ids
        self.models = models
        #: All to different versions.
        self._references = references
        #: The same choices in every run of the same requests.
        self._random = random.Random(1)
        self._fresh = 0

    def body(self, given: Any) -> Any:
        """Mend most bodies; the same is always made of the same."""
        number = _number(given)
        if number % UNTOUCHED == 0:
            return given
        return self._job(self._value(given, number), number) if isinstance(given, dict) else given

    def may(self, untouched: int = UNTOUCHED) -> bool:
        """Whether it is one of those requests that are mended."""
        return self._random.randrange(untouched) != 0

    def headers(self, given: Any) -> None:
        """Let most conditions hold, and most requests be none that was answered already."""
        if CONDITION in given and self.may():
            given[CONDITION] = ALWAYS
        key = given.get(idempotency.HEADER)
        if isinstance(key, str) and re.fullmatch(idempotency.PATTERN, key) and self.may(REPEATED):
            self._fresh += 1
            given[idempotency.HEADER] = f"{self._fresh}-{key}"[:255]

    def query(self, given: Any) -> None:
        """Keep most options of other formats out."""
        known = formats.option_models()
        chosen = known.get(given["format"]) if isinstance(given.get("format"), str) else None
        if chosen is None or not self.may():
            return
        options = {name for model in known.values() for name in model.model_fields}
        for name in (options - chosen.model_fields.keys()) & given.keys():
            del given[name]

    def path(self, given: Any) -> None:
        """Let most paths lead to a model that there is."""
        if isinstance(name := given.get("name"), str) and re.fullmatch(NAME_PATTERN, name) and self.may():
            given["name"] = self._random.choice(self.models)

    def _value(self, given: Any, number: int) -> Any:
        if isinstance(given, list):
            return [self._value(each, number) for each in given]
        if isinstance(given, dict):
            made = {name: self._value(each, number) for name, each in given.items()}
            if isinstance(made.get("corpus"), str) and re.fullmatch(CORPUS, made["corpus"]):
                made["corpus"] = _chosen(self._ids["crp"], number)
            if made.get("templates") is not None and made.get("preset") is not None:
                # One or the other.
                made.pop(("templates", "preset")[number % 2])
            return made
        found = _ID.fullmatch(given) if isinstance(given, str) else None
        return given if found is None else _chosen(self._ids[found[1]], number)

    def _job(self, body: dict[Any, Any], number: int) -> dict[Any, Any]:
        """Let a job be about versions that there are, and have the time for something."""
        kind, time_s = body.get("kind"), body.get("max_seconds")
        if isinstance(time_s, float) and 0 < time_s < LEAST_S:
            body = {**body, "max_seconds": LEAST_S}
        field = _REFERENCES.get(kind) if isinstance(kind, str | None) else None
        if field is not None and isinstance(body.get(field), str):
            return {**body, field: _chosen(self._references, number)}
        named = body.get("models")
        if kind == "evaluate" and isinstance(named, list) and 0 < len(named) <= len(self._references):
            return {**body, "models": list(self._references[: len(named)])}
        return body


def _number(value: Any) -> int:
    return zlib.crc32(repr(value).encode("utf-8", "backslashreplace"))


def _chosen(choices: Sequence[str], number: int) -> str:
    return choices[number // UNTOUCHED % len(choices)]
