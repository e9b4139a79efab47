"""Calls that tag and parse sentences and text."""

from collections.abc import Sequence
from typing import Any

import httpx

from tagsmith.client.call import Call, as_model, given
from tagsmith.client.calls.corpora import Sentence
from tagsmith.client.text import ParsedSentences, TaggedText
from tagsmith.wire import TagResponse, TokenizerName


def tag(
    model: str,
    sentences: Sequence[Sentence] | None = None,
    output: str = "tags",
    *,
    text: str | Sequence[str] | None = None,
    **options: Any,
) -> Call[TagResponse]:
    """Tag sentences or text.

    A sentence is a list of tokens, of rows of columns, or of objects of named attributes. Text is split into
    sentences, also at line breaks. `options` are further fields of the request, such as `marginals`, `nbest`,
    `constraints` and `explain`.
    """
    if (sentences is None) == (text is None):
        raise ValueError("Give sentences or text, and not both.")
    body = {"model": model, "output": output, **given(sentences=sentences, text=text), **options}
    return Call("POST", "/tag", as_model(TagResponse), json=body, safe=True)


def parse(
    model: str,
    sentences: Sequence[Sentence] | None = None,
    *,
    text: str | Sequence[str] | None = None,
    marginals: bool = False,
    tokenizer: TokenizerName | None = None,
) -> Call[ParsedSentences]:
    """Find the dependency trees of sentences, or of those of a text, with a parser.

    A sentence is a list of tokens, or of rows with the columns that the parser needs. A text is split into sentences.
    With `marginals`, every sentence has the probabilities of its heads. Raises ValueError for a model that gives tags.
    """
    if (sentences is None) == (text is None):
        raise ValueError("Give sentences or text, and not both.")
    given_sentences = None if sentences is None else [list(each) for each in sentences]
    body = {
        "model": model,
        **given(sentences=given_sentences, text=text, tokenizer=tokenizer),
        **({"marginals": True} if marginals else {}),
    }
    read = as_model(TagResponse)

    def parsed(response: httpx.Response) -> ParsedSentences:
        return ParsedSentences.of(read(response), given_sentences)

    return Call("POST", "/tag", parsed, json=body, safe=True)


def tag_text(model: str, text: str, *, tokenizer: TokenizerName | None = None) -> Call[TaggedText]:
    """Tag a text, and find its labelled spans by character, each with a probability."""
    if not isinstance(text, str):
        raise TypeError("`text` is one string. Tag several with `tag(model, text=[...], output='spans')`.")
    body = {"model": model, "text": text, "output": "spans", "marginals": True, **given(tokenizer=tokenizer)}
    read = as_model(TagResponse)

    def tagged(response: httpx.Response) -> TaggedText:
        return TaggedText.of(text, read(response))

    return Call("POST", "/tag", tagged, json=body, safe=True)
