"""What a format consists of: options, a reader and a writer.

A module of this package that has a constant `FORMAT` is a format. `registry` finds it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Protocol, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.recognition import Head
from tagsmith.core.corpus.labels.codings import LabelCoding
from tagsmith.core.corpus.text.tokenizer import Tokenizer


def _tokenizer_of(value: object) -> object:
    """Return the tokenizer of a name, a record or JSON text."""
    if value is None or isinstance(value, Tokenizer):
        return value
    try:
        return Tokenizer.of(value)
    except ValueError as error:
        raise option_error(str(error)) from None


#: A tokenizer in the options of a corpus: a string in a query, a record in the store.
TokenizerOption = Annotated[
    InstanceOf[Tokenizer] | None,
    BeforeValidator(_tokenizer_of),
    PlainSerializer(lambda tokenizer: tokenizer and tokenizer.record()),
    WithJsonSchema({"type": "string"}),
]


class LabelOptions(BaseModel):
    """Options for labels. Every format has them, for reading and for writing."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    labels: LabelCoding | None = Field(
        default=None,
        description="Convert the labels to this coding of chunks. By default they stay unchanged.",
    )
    repair: bool = Field(
        default=False,
        description="Correct labels that break their coding. They are interpreted as the CoNLL scorer does.",
    )


class Options(LabelOptions):
    """Base of the options of every format.

    Unknown options are rejected, so a misspelt one is never ignored. Not strict, because a query contains only strings.
    """

    labelled: bool = Field(
        default=True, description="Whether the text has labels. Without labels it can only be tagged."
    )
    partial: bool = Field(
        default=False,
        description="Whether labels may be left open: `?` allows every label, and `B-PER|I-PER` one of these.",
    )
    tokenizer: TokenizerOption = Field(
        default=None,
        description="What splits text into tokens like those of the corpus, for models trained on it: `words`, "
        '`blanks`, `characters` or `{"pattern": "..."}`. By default training chooses one by the tokens.',
    )

    @model_validator(mode="after")
    def _open_labels_stay(self) -> Self:
        if self.partial and (self.labels is not None or self.repair):
            raise option_error(
                "Labels that are left open have no coding. Remove `labels` and `repair`, or `partial`."
            )
        return self


OptionsT = TypeVar("OptionsT", bound=Options)


class Reader(Protocol):
    """Takes bytes in chunks of any size and returns a corpus. Raises `Invalid` with line numbers."""

    def feed(self, chunk: bytes) -> None: ...

    def finish(self) -> Corpus: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the input of a reader."""

    max_line_bytes: int
    max_text_bytes: int  # total of all members of an archive


def _no_kernels() -> None:
    """The format has no kernels to compile."""


def _never(_: Head) -> bool:
    """The format is not recognised by its content."""
    return False


def _as_given(options: OptionsT, _: Head) -> OptionsT:
    """The options do not depend on the text."""
    return options


@dataclass(frozen=True, slots=True)
class Format(Generic[OptionsT]):
    """One format."""

    name: str
    options: type[OptionsT]
    reader: Callable[[OptionsT, Limits], Reader]
    #: Raises its errors before it returns the first chunk.
    writer: Callable[[Corpus, OptionsT], Iterator[bytes]]
    media_type: str = "text/plain; charset=utf-8"
    holds_bags: bool = False  # whether it can hold tokens with named attributes
    holds_trees: bool = False  # whether it can hold heads and relations
    warm: Callable[[], None] = _no_kernels  # compiles the kernels, or loads them from the cache
    recognises: Callable[[Head], bool] = _never  # whether a text is certainly of this format
    #: Chooses options that are left open, by the beginning of the text. They are stored with the corpus.
    resolve: Callable[[OptionsT, Head], OptionsT] = _as_given
    #: Options that have a meaning for reading only.
    reading_options: frozenset[str] = frozenset()
    order: int = 100  # formats are listed in this order, then by name


def split_names(value: object) -> object:
    """Split a comma-separated string from a query into a tuple of names; leave other values as they are."""
    return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value


def option_error(reason: str) -> PydanticCustomError:
    """Return the error to raise in a validator of options."""
    return PydanticCustomError("option", "{reason}", {"reason": reason})


def parse(model: type[OptionsT], values: Mapping[str, object], format_name: str) -> OptionsT:
    """Return the options of one format. Raises `Invalid` with the name of each wrong parameter."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        faults = [
            _fault(item, model, format_name) for item in error.errors(include_url=False, include_input=False)
        ]
        raise Invalid(
            f"Some options are not valid for format {format_name}. Correct or remove them.",
            faults,
            code="invalid_options",
        ) from None


def _fault(item: ErrorDetails, model: type[Options], format_name: str) -> Fault:
    reason = item["msg"]
    if item["type"] == "extra_forbidden":
        reason = f"This is not an option of {format_name}. Its options are {', '.join(model.model_fields)}."
    return Fault(reason, parameter=str(item["loc"][0]) if item["loc"] else None, type=item["type"])


def stored(options: Options) -> dict[str, Any]:
    """Return the options as plain values for the store. Defaults are included: a later release may change them."""
    kept = options.model_dump(mode="json")
    if options.tokenizer is None:
        del kept["tokenizer"]  # each training chooses one
    return kept
