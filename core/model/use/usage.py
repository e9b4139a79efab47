"""How a model is used: its tokenizer, the names of its columns, an example, whether its probabilities are calibrated.

Tagging itself needs none of it. It is a part of the header of the model file, which older and imported files lack.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tagsmith.core.corpus.labels.segmentation import codes_words
from tagsmith.core.corpus.text.tokenizer import Tokenizer, TokenizerKind

#: The tokenizer of models that were trained before tokenizers were kept.
_FIRST_VERSION = 1
#: Limits of an example. Files are untrusted input, and the example is a part of every description of a version.
_MAX_TOKENS, _MAX_TEXT = 100, 10_000


@dataclass(frozen=True, slots=True)
class Usage:
    """How a model is used. The default says nothing, as the files of other programs."""

    #: What splits text into tokens like those of the training corpus; None if nothing is known.
    tokenizer: Tokenizer | None = None
    #: The names of the columns of a token; empty if unknown.
    columns: tuple[str, ...] = ()
    #: A training sentence, as the tokens of a request, and as text if the tokenizer splits it into these tokens.
    example: tuple[Any, ...] = ()
    text: str | None = None
    #: Whether the trainer fits probabilities; None if unknown.
    calibrated: bool | None = None

    def record(self) -> dict[str, Any]:
        """Return plain values for the header of a model file."""
        found = {
            "tokenizer": None if self.tokenizer is None else self.tokenizer.record(),
            "columns": list(self.columns),
            "example": list(self.example),
            "text": self.text,
            "calibrated": self.calibrated,
        }
        return {name: value for name, value in found.items() if value not in (None, [])}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Usage":
        """Read a record; raise ValueError or TypeError if it is invalid."""
        given = record.get("tokenizer")
        columns, example = record.get("columns", []), record.get("example", [])
        text, calibrated = record.get("text"), record.get("calibrated")
        sound = (
            isinstance(columns, list)
            and all(isinstance(name, str) for name in columns)
            and isinstance(example, list)
            and len(example) <= _MAX_TOKENS
            and all(isinstance(token, (str, list, dict)) for token in example)
            and (text is None or (isinstance(text, str) and len(text) <= _MAX_TEXT))
            and calibrated in (None, True, False)
        )
        if not sound:
            raise ValueError("not a record of usage")
        tokenizer = None if given is None else Tokenizer.of(given)
        return cls(tokenizer, tuple(columns), tuple(example), text, calibrated)

    def tokenizer_for(self, given: Tokenizer | None, labels: Sequence[str]) -> Tokenizer:
        """Return the tokenizer to use: the given one, else that of the model, else one that suits its labels.

        A kind without details means the model's own version of it.
        """
        kind: TokenizerKind = "characters" if codes_words(labels) else "words"
        own = self.tokenizer or Tokenizer(kind, _FIRST_VERSION)
        if given is None or (given == Tokenizer(given.kind) and given.kind == own.kind):
            return own
        if self.tokenizer is None and given.pattern is None and not given.clitics:
            return Tokenizer(given.kind, _FIRST_VERSION)
        return given


#: Nothing is known.
UNKNOWN = Usage()


def takes(columns: int, usage: Usage) -> str:
    """Say in a sentence or two what the tokens of a model are, for errors."""
    if columns == 0:
        return "This model takes tokens with named attributes. Send sentences of objects."
    if columns == 1:
        return "This model takes one string per token, or text."
    named = len(usage.columns) == columns and not all(name.isdecimal() for name in usage.columns)
    names = f": {', '.join(usage.columns)}" if named else ""
    row = ", ".join(f'"{name}"' for name in (usage.columns if named else map(str, range(columns))))
    return f"This model needs {columns} columns per token{names}. Send sentences of rows, each [{row}]."
