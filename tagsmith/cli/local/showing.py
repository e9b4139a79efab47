"""`tagsmith models show --local` and `tagsmith explain --local`: what a model file contains, and why it decides."""

import dataclasses
import hashlib
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

from tagsmith.cli import output
from tagsmith.cli.local import reading
from tagsmith.cli.local.tagging import LocalEngine
from tagsmith.cli.recognition import ModelInput
from tagsmith.core.model import inspection
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.explanation import explain
from tagsmith.core.model.parser import parse
from tagsmith.core.model.parsing.explanation import explain_arcs, in_entry
from tagsmith.core.model.use.text import sentences_of

#: Features that are listed.
TOP = 15


def show(path: Path, *, as_json: bool) -> int:
    """Print what a model file contains."""
    model = reading.tagger_of(path).model
    top, _ = inspection.top_features(model, None, None, TOP, None)
    size = path.stat().st_size
    about: dict[str, Any] = {
        "model": str(path),
        "labels": list(model.labels),
        "columns": model.features.columns,
        "templates": len(model.features.templates) + len(model.features.bag_templates),
        "active_features": model.active_features,
        "size_bytes": size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "features": [dataclasses.asdict(each) for each in top],
    }
    if as_json:
        output.print_json(about)
        return 0
    output.say(f"[bold]{output.escaped(path)}[/]  {output.size(size)}")
    output.say(
        f"  {output.columns(model.features.columns)} · {about['templates']} templates · "
        f"{model.active_features:,} features · {len(model.labels)} labels"
    )
    output.say(f"  labels {output.escaped(' '.join(model.labels))}")
    rows = [[output.escaped(each.feature), output.escaped(each.label), f"{each.weight:+.3f}"] for each in top]
    output.print_table(["STRONGEST FEATURES", "LABEL", "WEIGHT"], rows, right=["WEIGHT"])
    return 0


def explained(path: Path, given: Callable[[ModelInput], dict[str, Any]]) -> dict[str, Any]:
    """Return the tokens of a text or of sentences, and why each got its tag or its head, as the API does.

    `given` returns the input of a request for what the model takes.
    """
    engine = LocalEngine.open(path)
    found = given(engine.model_input)
    sentences: list[list[Any]]
    if "text" in found:
        sentences = [
            list[Any](each.tokens) for each in sentences_of([found["text"]], engine.text_tokenizer())
        ]
    else:
        sentences = found["sentences"]
    wanted = [(i, token) for i, sentence in enumerate(sentences) for token in range(len(sentence))]
    tagger, coded = engine.tagger, engine.tagger.code(sentences)
    is_text = "text" in found
    # As in the API, a text counts as one sentence.
    starts = list(accumulate(map(len, sentences), initial=0)) if is_text else [0] * len(sentences)
    if engine.parses:
        arcs = explain_arcs(tagger, coded, parse(tagger, coded), wanted)
        made = [dataclasses.asdict(in_entry(each, starts[each.sentence])) for each in arcs]
    else:
        decoded = decode(tagger, coded, DecodingOptions(distributions=True))
        made = [dataclasses.asdict(each) for each in explain(tagger, coded, decoded, wanted)]
    for each in made:
        each["token"] += starts[each["sentence"]]
        each["sentence"] = 0 if is_text else each["sentence"]
    words = [[token if isinstance(token, str) else token[0] for token in each] for each in sentences]
    tokens = [[token for each in words for token in each]] if is_text else words
    return {"tokens": tokens, "arcs" if engine.parses else "explain": made}
