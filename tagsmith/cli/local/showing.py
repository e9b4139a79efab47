"""`tagsmith models show --local` and `tagsmith explain --local`: what a model file contains, and why it decides."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from tagsmith.cli import output
from tagsmith.cli.local import reading
from tagsmith.cli.local.tagging import LocalEngine
from tagsmith.core.model import inspection
from tagsmith.core.model.decoding import DecodingOptions, decode
from tagsmith.core.model.explanation import explain
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


def explained(path: Path, text: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the tokens of a text, and why each got its tag."""
    engine = LocalEngine.open(path)
    sentences = [each.tokens for each in sentences_of([text], engine.text_tokenizer())]
    coded = engine.tagger.code(sentences)
    decoded = decode(engine.tagger, coded, DecodingOptions(distributions=True))
    wanted = [(i, token) for i, sentence in enumerate(sentences) for token in range(len(sentence))]
    made = explain(engine.tagger, coded, decoded, wanted)
    tokens = [token for sentence in sentences for token in sentence]
    # As in the API, a text counts as one sentence.
    return tokens, [dataclasses.asdict(each) | {"sentence": 0, "token": i} for i, each in enumerate(made)]
