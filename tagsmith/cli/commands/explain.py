"""`explain`: why a model chose its tags."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tagsmith.cli import complete, output
from tagsmith.cli.connection import connected
from tagsmith.cli.errors import CommandError
from tagsmith.cli.options import LocalOptions, command

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
    """Show why each token got its tag: the features for it, against the next best tag."""
    text = (options.text if options.text is not None else sys.stdin.read()).strip()
    if not text:
        raise CommandError('Give a text: tagsmith explain ner "Ada wrote to Charles."')
    text = " ".join(text.split())
    text.encode()  # bytes of an argument that are not UTF-8 are reported before anything is printed
    if options.local:
        from tagsmith.cli.local import showing  # noqa: PLC0415

        tokens, explanations = showing.explained(Path(options.model), text)
        raw: Any = {"tokens": [tokens], "explain": explanations}
    else:
        with connected(options.url) as client:
            response = client.tag(options.model, text=text, explain=True)
        raw = output.plain(response)
        (tokens,) = response.tokens
        explanations = raw["explain"]
    if options.as_json:
        output.print_json(raw)
        return 0
    wanted = set(options.token or ())
    if missing := wanted - set(tokens):
        raise CommandError(
            f"The text has no token {', '.join(sorted(missing))}. Its tokens: {' '.join(tokens)}."
        )
    shown = [each for each in explanations if not wanted or tokens[each["token"]] in wanted]
    if not wanted:
        # Tokens outside of spans are rarely the question.
        shown = [each for each in shown if each["chosen"]["tag"] != "O"] or shown
    for number, each in enumerate(shown):
        if number:
            output.say()
        _print_one(tokens[each["token"]], each, options.top)
    return 0


def _print_one(token: str, explanation: dict[str, Any], top: int) -> None:
    chosen, other = explanation["chosen"], explanation["runner_up"]
    against = f"  against {output.escaped(other['tag'])} {100 * other['probability']:.0f} %" if other else ""
    output.say(
        f"[bold]{output.escaped(token)}[/]  [green]{output.escaped(chosen['tag'])}[/] "
        f"{100 * chosen['probability']:.0f} %{against}"
    )
    weights = _weights(chosen)
    for name, weight in _weights(other or {}).items():
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
