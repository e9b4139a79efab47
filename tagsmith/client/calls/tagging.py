"""Calls that tag sentences and text."""

from collections.abc import Sequence
from typing import Any

import httpx

from tagsmith.client.call import Call, as_model, given
from tagsmith.client.calls.corpora import Sentence
from tagsmith.client.text import TaggedText
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


def tag_text(model: str, text: str, *, tokenizer: TokenizerName | None = None) -> Call[TaggedText]:
    """Tag a text, and find its labelled spans by character, each with a probability."""
    if not isinstance(text, str):
        raise TypeError("`text` is one string. Tag several with `tag(model, text=[...], output='spans')`.")
    body = {"model": model, "text": text, "output": "spans", "marginals": True, **given(tokenizer=tokenizer)}
    read = as_model(TagResponse)

    def tagged(response: httpx.Response) -> TaggedText:
        return TaggedText.of(text, read(response))

    return Call("POST", "/tag", tagged, json=body, safe=True)
