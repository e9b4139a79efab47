"""Parsing of tagging requests: from the bytes of a body to sentences or text, or to the places of its faults.

Large bodies are parsed in pieces. Parsers hold the GIL, and other requests are answered between two pieces.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import orjson
import pydantic_core
from pydantic import ValidationError

from tagsmith.app.http import bodies, problems
from tagsmith.core.base.errors import Fault, FaultType, Invalid, TagsmithError, TooLarge
from tagsmith.core.base.json_cut import Cut, Piece, cut_array
from tagsmith.core.base.spec import faults_of
from tagsmith.core.corpus.attributes import count_members
from tagsmith.core.corpus.formats.ndjson import members_of
from tagsmith.wire import TagRequest
from tagsmith.wire.names import MAX_REFERENCE

#: The model and the sentences of a request that has no other fields.
Plain = tuple[str, list[list[Any]]]

#: Parsing a piece takes a millisecond or two, and several times that if the memory for it is new to the process.
PIECE_BYTES = 64 << 10
#: The most bytes of one token. Anything else is parsed in smaller pieces.
MAX_TOKEN_BYTES = 1 << 20
#: The most values outside `sentences` in a large body, such as constraints of tokens.
MAX_OTHERS = 300_000
#: Tokens whose types are compared at once, and that are freed at once.
CHECKED_TOKENS = 1 << 16
#: The fields of the most common request.
_PLAIN = {"model", "sentences"}
_NO_TOKENS = "`sentences` is a list, and each sentence is a list of tokens. Send raw text as `text`."


#: Replaces everything but line breaks by blanks, which keeps the places of all that follows.
_BLANK = bytes(c if c == ord("\n") else ord(" ") for c in range(256))


#: Large bodies are parsed one at a time. All of it holds the GIL: two threads take as long, and the event loop would
#: have to wait for both of them.
_ONE_AT_A_TIME = threading.Lock()


def read(raw: bytes, max_sentences: int) -> TagRequest:
    """Parse a request of any size. Raise an error with the places of its faults."""
    if len(raw) <= PIECE_BYTES:
        return parse(raw, plain(raw))
    with _ONE_AT_A_TIME:
        return _read_large(raw, max_sentences)


def _read_large(raw: bytes, max_sentences: int) -> TagRequest:
    cut = cut_array(raw, "sentences", PIECE_BYTES)
    if cut.other_commas > MAX_OTHERS:
        raise TooLarge(
            f"The fields other than `sentences` have more than {MAX_OTHERS:,} values. Send several smaller requests.",
            code="too_many_values",
        )
    if cut.begin < 0:
        return parse(raw, plain(raw))
    if max(piece.end - piece.begin for piece in cut.pieces(len(raw))) > PIECE_BYTES + MAX_TOKEN_BYTES:
        raise TooLarge(
            f"A token has more than {MAX_TOKEN_BYTES:,} bytes. Shorten it.", code="too_many_values"
        )
    sentences = _in_pieces(raw, cut, max_sentences)
    if cut.end < 0:
        raise _cut_off(raw)
    request = _parse_rest(raw, cut)
    if request.sentences:  # a later member, whose name is written in another way
        return request
    request = request.model_copy(update={"sentences": sentences})
    _check_lists(sentences)
    if check_tokens(sentences) is dict:
        check_once(raw, request)
    return request


def _parse_rest(raw: bytes, cut: Cut) -> TagRequest:
    """Parse a request without the elements of its sentences."""
    before, after = raw[: cut.begin], raw[cut.end :]
    try:
        return parse(before + after, plain(before + after))
    except TagsmithError:  # again, for the places of its faults
        rest = before + raw[cut.begin : cut.end].translate(_BLANK) + after
        return parse(rest, None)


def free(sentences: list[Any]) -> None:
    """Free the tokens little by little: to free a million at once holds the GIL for a tenth of a second."""
    while sentences:
        sentence = sentences.pop()
        while len(sentence) > CHECKED_TOKENS:
            del sentence[-CHECKED_TOKENS:]


def too_many(found: str, limit: int, place: str) -> TooLarge:
    """Build the error for a request with too many sentences or tokens."""
    reason = (
        f"{found}; a request may have {limit}. Send several requests, or tag a corpus with a job of kind tag."
    )
    return TooLarge("The request is too large.", [Fault(reason, pointer=place)], code="too_many_tokens")


def _in_pieces(raw: bytes, cut: Cut, most: int) -> list[Any]:
    """Parse an array piece by piece."""
    elements: list[Any] = []
    pieces = cut.pieces(len(raw))
    for number, piece in enumerate(pieces):
        is_last = number == len(pieces) - 1
        if is_last and cut.end < 0:
            _reparsed(raw, piece, b"", is_first=number == 0)
            raise _cut_off(raw)
        part = _piece(raw, piece, is_first=number == 0, is_last=is_last)
        if piece.begins_inside:
            elements[-1] += part.pop(0)
        elements += part
        if len(elements) > most:
            raise too_many(f"more than {most} sentences", most, "/sentences")
    return elements


def _piece(raw: bytes, piece: Piece, *, is_first: bool, is_last: bool) -> list[Any]:
    """Parse a piece as a list. Its first and its last element can be parts of elements."""
    inner, close = raw[piece.begin : piece.end], b"]]" if piece.ends_inside else b"]"
    try:
        part: list[Any] = orjson.loads((b"[[" if piece.begins_inside else b"[") + inner + close)
    except orjson.JSONDecodeError:
        part = _reparsed(raw, piece, close, is_first=is_first)
    # A comma needs an element before it and after it.
    if not (part[:1] != [[]] if piece.begins_inside else part or (is_first and is_last)):
        _reparsed(raw, piece, close if is_last or piece.begins_inside else b",0]", is_first=is_first)
    if piece.ends_inside and not part[-1]:
        _reparsed(raw, piece, b",0]]", is_first=is_first)
    return part


def _reparsed(raw: bytes, piece: Piece, close: bytes, *, is_first: bool) -> list[Any]:
    """Parse a piece by the parser that reports places. Raise Malformed with the place in the whole text."""
    before = b"[[0," if piece.begins_inside else b"[" if is_first else b"[0,"
    try:
        part: list[Any] = pydantic_core.from_json(
            before + raw[piece.begin : piece.end] + close, allow_inf_nan=False
        )
    except ValueError as error:
        columns = piece.begin - (raw.rfind(b"\n", 0, piece.begin) + 1) - len(before)
        raise bodies.malformed(str(error), lines=raw.count(b"\n", 0, piece.begin), columns=columns) from None
    if not is_first:
        (part[0] if piece.begins_inside else part).pop(0)
    return part


def _cut_off(raw: bytes) -> problems.Malformed:
    """Build the error for a body that ends before its sentences do."""
    line, column = 1 + raw.count(b"\n"), len(raw) - raw.rfind(b"\n") - 1
    return bodies.malformed(f"EOF while parsing a list at line {line} column {column}")


def _check_lists(sentences: Sequence[Any]) -> None:
    """Raise Invalid if an element is not a list."""
    if not set(map(type, sentences)) <= {list}:
        wrong = (i for i, each in enumerate(sentences) if type(each) is not list)
        faults = [
            Fault(_NO_TOKENS, pointer=f"/sentences/{i}", type="list_type")
            for i in islice(wrong, problems.MAX_FAULTS)
        ]
        raise Invalid("The request cannot be tagged.", faults, code="invalid_request")


def plain(raw: bytes) -> Plain | None:
    """Return the model and the sentences of a request that has only these fields, and tokens made of strings.

    Return None for any other request and for any fault: full validation handles these. For plain requests this check
    takes a fifth of the time of full validation.
    """
    try:
        given = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if type(given) is not dict or given.keys() != _PLAIN:
        return None
    model, sentences = given["model"], given["sentences"]
    sound = type(model) is str and len(model) <= MAX_REFERENCE and type(sentences) is list
    if not sound or not set(map(type, sentences)) <= {list} or kind_of(sentences) not in (str, list):
        return None
    return model, sentences


#: Faults are described up to this number. Describing one takes 10 us, in which no other thread runs.
MOST_DESCRIBED = 10_000


def parse(raw: bytes, found: Plain | None) -> TagRequest:
    """Parse a request. Raise an error with the places of its faults. `found` is the result of `plain`."""
    if found is not None:
        return TagRequest.model_construct(_PLAIN, model=found[0], sentences=found[1])
    try:
        request = TagRequest.model_validate_json(raw)
    except ValidationError as error:
        request = _with_whole_numbers(raw, error)
    if ("sentences" in request.model_fields_set) == (request.text is not None):
        fault = Fault(
            "give sentences or a text",
            pointer="/sentences" if request.text is None else "/text",
            type="missing" if request.text is None else FaultType.INCONSISTENT,
        )
        raise Invalid("The request is not valid.", [fault], code="invalid_request")
    if check_tokens(request.sentences) is dict:
        check_once(raw, request)
    return request


def _with_whole_numbers(raw: bytes, refused: ValidationError) -> TagRequest:
    """Parse a rejected request again, with whole floats such as 2.0 as integers. Raise if that fails too."""
    if refused.error_count() > MOST_DESCRIBED:
        reason = (
            f"The request has {refused.error_count():,} faults, such as names that it cannot have, or values of "
            "another type. Compare it with an example in /docs."
        )
        raise Invalid(
            "The request is not valid.", [Fault(reason, pointer="")], code="invalid_request"
        ) from None
    if any(item["type"] == "int_type" for item in refused.errors(include_url=False, include_context=False)):
        with contextlib.suppress(ValidationError):
            given = bodies.whole(pydantic_core.from_json(raw))
            return TagRequest.model_validate_json(pydantic_core.to_json(given))
    raise _invalid(refused, raw) from None


def kind_of(sentences: Sequence[Sequence[Any]]) -> type | None:
    """Return the type of all tokens: strings, lists of strings, or objects. Return None for anything else.

    The loops over tokens run at C speed, which holds the GIL, so not over too many tokens at once. The contents of
    objects are checked later, when their attributes are looked up.
    """
    tokens, kinds, columns = chain.from_iterable(sentences), set[type](), set[type]()
    while part := list(islice(tokens, CHECKED_TOKENS)):
        own = set(map(type, part))
        kinds |= own
        if own == {list}:
            columns |= set(map(type, chain.from_iterable(part)))
    if kinds <= {str}:
        return str
    if kinds == {dict}:
        return dict
    return list if kinds == {list} and columns <= {str} else None


def check_tokens(sentences: Sequence[Sequence[Any]]) -> type:
    """Return the type of all tokens. Raise Invalid with the places of the faults."""
    kind = kind_of(sentences)
    if kind is not None:
        return kind
    faults = list(islice(_wrong_tokens(sentences), problems.MAX_FAULTS))
    reason = "Tokens are strings, or all of them lists of strings, or all of them objects."
    raise Invalid(reason, faults, code="invalid_request")


def check_once(raw: bytes, request: TagRequest) -> None:
    """Raise Invalid if an object has a duplicate name. JSON parsers silently keep only the last value."""
    limits = 0 if request.constraints is None else len(request.constraints.model_fields_set)
    if count_members(raw) == len(request.model_fields_set) + limits + sum(map(members_of, request.sentences)):
        return
    bodies.refuse_repeated_names(raw, "/sentences")


def _wrong_tokens(sentences: Sequence[Sequence[Any]]) -> Iterator[Fault]:
    """Yield the faults in order. All tokens must have the type of the first one."""
    first = next(chain.from_iterable(sentences))
    for i, sentence in enumerate(sentences):
        for j, token in enumerate(sentence):
            place = f"/sentences/{i}/{j}"
            if not isinstance(token, (str, list, dict)):
                reason = "A token is a string, a list of strings or an object."
                yield Fault(reason, pointer=place, type="string_type")
            elif isinstance(first, (str, list, dict)) and type(token) is not type(first):
                reason = "This token has another type than the first. Use one type for all."
                yield Fault(reason, pointer=place, type=FaultType.MIXED_TYPES)
            elif isinstance(token, list):
                for k, column in enumerate(token):
                    if not isinstance(column, str):
                        yield Fault(
                            "A column of a token is a string.", pointer=f"{place}/{k}", type="string_type"
                        )


def _invalid(error: ValidationError, raw: bytes) -> Exception:
    items = error.errors(include_url=False, include_context=True, include_input=False)
    if items[0]["type"] == "json_invalid":
        return bodies.malformed(str(items[0]["ctx"]["error"]))
    faults = faults_of(error, pydantic_core.from_json(raw), TagRequest)[: problems.MAX_FAULTS]
    faults = [dataclasses.replace(each, reason=_NO_TOKENS) if _no_tokens(each) else each for each in faults]
    return Invalid("The request cannot be tagged.", faults, code="invalid_request")


def _no_tokens(fault: Fault) -> bool:
    return fault.type == "list_type" and (fault.pointer or "").startswith("/sentences")
