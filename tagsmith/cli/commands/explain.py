"""`explain`: why a model chose its tags or its heads."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tagsmith.cli import complete, inputs, output, recognition, word_lines
from tagsmith.cli.connection import connected, model_input
from tagsmith.cli.errors import CommandError
from tagsmith.cli.options import LocalOptions, command
from tagsmith.cli.recognition import ModelInput
from tagsmith.core.corpus.formats.recognition import Head

BAR_WIDTH = 16


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(LocalOptions):
    """Options of `explain`."""

    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="name, name:3, name@alias; a file with --local.",
            autocompletion=complete.models,
        ),
    ]
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="Default: standard input.")] = None
    token: Annotated[
        list[str] | None,
        typer.Option("--token", "-t", metavar="TOKEN", help="Only these tokens. May be repeated."),
    ] = None
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Features per token.")] = 8


def explain(options: ExplainOptions) -> int:
    """Show why each token got its tag, or its head: the features for it, against the next best."""
    text = (options.text if options.text is not None else sys.stdin.read()).strip("\n")
    if not text.strip():
        raise CommandError('Give a text: tagsmith explain ner "Ada wrote to Charles."')
    text.encode()  # bytes of an argument that are not UTF-8 are reported before anything is printed
    if options.local:
        from tagsmith.cli.local import showing  # noqa: PLC0415

        raw = showing.explained(Path(options.model), lambda model: _given(options.model, text, model))
    else:
        with connected(options.url) as client:
            given = _given(options.model, text, model_input(client, options.model))
            response = client.tag(options.model, explain=True, **given)
        raw = output.plain(response)
        if not response.tokens:
            raw["tokens"] = [[row[0] for row in rows] for rows in given["sentences"]]
    if options.as_json:
        output.print_json(raw)
        return 0
    _print(raw, set(options.token or ()), options.top)
    return 0


def _given(name: str, text: str, model: ModelInput) -> dict[str, Any]:
    """Return the input of a request: a text, or the sentences of columns for a model that needs several."""
    if model.columns in (0, 1, None):
        return {"text": " ".join(text.split())}
    head = Head(text.encode(), whole=True)
    content = recognition.content_of(head, model)
    if content not in ("columns", "conllu"):
        raise CommandError(f"{name} needs {model.columns} columns per token. Give them by lines, or CoNLL-U.")
    word = word_lines.row_of(word_lines.places_of(name, model)) if content == "conllu" else None
    batches = inputs.read_sentences([text.encode() + b"\n"], word)
    return {"sentences": [each.rows for batch in batches for each in batch if each.rows]}


def _print(raw: dict[str, Any], wanted: set[str], top: int) -> None:
    sentences, explanations = raw["tokens"], raw.get("arcs") or raw.get("explain") or []
    known = [token for tokens in sentences for token in tokens]
    if missing := wanted.difference(known):
        raise CommandError(
            f"The text has no token {', '.join(sorted(missing))}. Its tokens: {' '.join(known)}."
        )
    shown = [
        each for each in explanations if not wanted or sentences[each["sentence"]][each["token"]] in wanted
    ]
    if not wanted:
        # Tokens outside of spans are rarely the question.
        shown = [each for each in shown if each.get("chosen", {}).get("tag") != "O"] or shown
    for number, each in enumerate(shown):
        if number:
            output.say()
        tokens = sentences[each["sentence"]]
        if "other_relation" in each:
            _print_arc(tokens, each, top)
        else:
            _print_one(tokens[each["token"]], each, top)


def _print_arc(tokens: Sequence[str], explanation: dict[str, Any], top: int) -> None:
    """Print why a word has its head, and why its relation to it."""

    def named(head: int) -> str:
        return tokens[head - 1] if head else "root"

    word = tokens[explanation["token"]]
    for title, chosen, other, name in (
        ("head", explanation["head"], explanation["runner_up"], lambda found: named(found["head"])),
        ("relation", explanation["relation"], explanation["other_relation"], lambda found: found["relation"]),
    ):
        if chosen is not None:
            output.say(_titled(f"{word}  {title}", name(chosen), chosen, other and name(other), other))
            _print_weights(_features(chosen), _features(other), top)


def _titled(
    title: str, name: str, chosen: dict[str, Any], other_name: str | None, other: dict[str, Any] | None
) -> str:
    against = f"  against {output.escaped(other_name)} {100 * other['probability']:.0f} %" if other else ""
    return (
        f"[bold]{output.escaped(title)}[/]  [green]{output.escaped(name)}[/] "
        f"{100 * chosen['probability']:.0f} %{against}"
    )


def _features(candidate: dict[str, Any] | None) -> dict[str, float]:
    return dict(zip(candidate["features"], candidate["weights"], strict=True)) if candidate else {}


def _print_one(token: str, explanation: dict[str, Any], top: int) -> None:
    chosen, other = explanation["chosen"], explanation["runner_up"]
    output.say(_titled(token, chosen["tag"], chosen, other and other["tag"], other))
    _print_weights(_weights(chosen), _weights(other or {}), top)


def _print_weights(chosen: dict[str, float], other: dict[str, float], top: int) -> None:
    """Print the weights for what was chosen minus those for the other, largest first."""
    weights = dict(chosen)
    for name, weight in other.items():
        weights[name] = weights.get(name, 0.0) - weight
    ranked = sorted(weights.items(), key=lambda item: -abs(item[1]))
    most = abs(ranked[0][1]) if ranked and ranked[0][1] else 1.0
    rows = [
        [f"{weight:+.2f}", _bar(weight / most), output.escaped(name)]
        for name, weight in ranked[:top]
        if abs(weight) > 0.005
    ]
    output.print_table(
        [" ", "", ""], rows, right=[" "], empty="No feature of the model speaks for or against it."
    )
    if len(ranked) > top:
        output.say(f"[dim]  and {len(ranked) - top} more[/]")


def _weights(candidate: dict[str, Any]) -> dict[str, float]:
    """The weights for a tag, by the name of the feature; those of label pairs under the pair."""
    if not candidate:
        return {}
    found = dict(zip(candidate["features"], candidate["weights"], strict=True))
    pairs = candidate["transitions"]
    for before, after, feature, weight in zip(
        pairs["before"], pairs["after"], pairs["features"], pairs["weights"], strict=True
    ):
        # Pairs of the chosen tag and of the other tag stand for the same place.
        place = "tag before" if after == candidate["tag"] else "tag after"
        name = f"{place}: {before if place == 'tag before' else after}" + (f" & {feature}" if feature else "")
        found[name] = found.get(name, 0.0) + weight
    return found


def _bar(share: float) -> str:
    length = max(1, round(abs(share) * BAR_WIDTH))
    return f"[{'green' if share > 0 else 'red'}]{'█' * length}[/]"


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    command(app, "explain", panel="Train and use")(explain)
