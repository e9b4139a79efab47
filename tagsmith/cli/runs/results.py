"""Results of runs for people: scores per type, tables of comparisons, and what to do next."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tagsmith.cli import output
from tagsmith.cli.options import DEFAULT_ALIAS

#: Types named in the summary of a run; the rest is in `tagsmith models show`.
SUMMARY_TYPES = 8


def print_trained(result: Mapping[str, Any], reference: str, seconds: float) -> None:
    """Print the line that ends a training run."""
    name = reference or f"{result['model']}:{result['version']}"
    dev = (result.get("metrics") or {}).get("dev")
    parts = [f"[green]Done[/] in {output.duration(seconds)}: [bold]{output.escaped(name)}[/]"]
    if dev is not None and dev.get("score") == "uas":
        las = "" if dev["las"] is None else f"   LAS [bold]{dev['las']:.2f}[/]"
        parts.append(f"dev UAS [bold]{dev['uas']:.2f}[/]{las}")
    elif (score := output.score_of(dev)) is not None:
        types = list(output.types_of(dev).items())
        named = ", ".join(
            f"{output.escaped(each)} {about['f1']:.1f}" for each, about in types[:SUMMARY_TYPES]
        )
        more = f", {len(types) - SUMMARY_TYPES} more" if len(types) > SUMMARY_TYPES else ""
        parts.append(
            f"dev {score[0]} [bold]{score[1]:.2f}[/]" + (f" ({named}{more})" if len(types) > 1 else "")
        )
    else:
        parts.append("[dim]no score (--dev FILE, or --dev 0.1 to hold out a tenth)[/]")
    parts.append(f"{result['active_features']:,} features, {output.size(result['size_bytes'])}")
    output.say("   ".join(parts))
    for warning in result.get("warnings") or ():
        output.say(f"  [yellow]![/] {output.escaped(warning)}")
    if result.get("promoted"):
        output.say(
            f"{output.escaped(result['model'])}@{result['promoted']} is now version {result['version']}."
        )
    elif result.get("not_promoted"):
        output.say(f"[yellow]Not promoted:[/] {output.escaped(result['not_promoted'])}")


def print_next_steps(result: Mapping[str, Any], *, takes_text: bool) -> None:
    """Print the commands that a user wants next."""
    name = str(result["model"])
    if result.get("promoted"):
        alias = "" if result["promoted"] == DEFAULT_ALIAS else f" --alias {result['promoted']}"
        serve = ("Undo it:", f"tagsmith models rollback {name}{alias}")
    else:
        serve = ("Serve it:", f"tagsmith models promote {name}:{result['version']}")
    # The name alone is the version that is served.
    reference = f"{name}:{result['version']}"
    if takes_text:
        print_steps(
            ("Try it:", f'echo "Some text" | tagsmith tag {reference}'),
            serve,
            ("See why:", f'tagsmith explain {reference} "Some text"'),
        )
    else:
        print_steps(
            ("Try it:", f"tagsmith tag {reference} < columns.txt"),
            serve,
            ("Look inside:", f"tagsmith models show {reference}"),
        )


def print_local_steps(path: str) -> None:
    """Print the commands that a user of a model file wants next."""
    print_steps(
        ("Try it:", f"tagsmith tag --local {shlex.quote(path)} < input"),
        ("Score it:", f"tagsmith eval --local {shlex.quote(path)} test.conll"),
        ("Serve it:", f"tagsmith models import NAME {shlex.quote(path)}"),
    )


def print_steps(*steps: tuple[str, str]) -> None:
    """Print commands with what they are for."""
    width = max(len(name) for name, _ in steps)
    for name, text in steps:
        output.say(f"[dim]{name:<{width}}[/]  {output.escaped(text)}")


def print_method(spec: Mapping[str, Any]) -> None:
    """Print the features and the trainer of a spec."""
    features = spec.get("features") or {}
    templates = features.get("templates")
    if isinstance(templates, str):
        many = sum(1 for line in templates.splitlines() if line.split("#")[0].strip())
        how = f"{many} templates ({features.get('syntax', 'crf++')})"
    elif templates:
        how = f"{len(templates)} templates"
    else:
        how = f"Preset {features.get('preset') or 'generic'}"
    output.say(f"{output.escaped(how)} · trainer {output.escaped(spec['trainer']['kind'])}")


def print_scores(metrics: Mapping[str, Any]) -> None:
    """Print scores per type and in total, as conlleval does; those of trees per relation."""
    if metrics.get("score") == "uas":
        _print_tree_scores(metrics)
        return
    rows = [
        [
            output.escaped(name),
            f"{about['precision']:.2f}",
            f"{about['recall']:.2f}",
            f"{about['f1']:.2f}",
            f"{about.get('gold', about.get('support', 0)):,}",
        ]
        for name, about in output.types_of(dict(metrics)).items()
    ]
    totals = [f"{metrics[name]:.2f}" for name in ("precision", "recall", "f1")]
    rows.append(["[bold]all[/]", *totals[:2], f"[bold]{totals[2]}[/]", f"{metrics['gold']:,}"])
    output.print_table(
        ["TYPE", "PRECISION", "RECALL", "F1", "SPANS"], rows, right=["PRECISION", "RECALL", "F1", "SPANS"]
    )
    output.say(
        f"accuracy {metrics['accuracy']:.2f} % of {metrics['tokens']:,} tokens, "
        f"{metrics['sentences_correct']:,} of {metrics['sentences']:,} sentences without an error"
    )


def _print_tree_scores(metrics: Mapping[str, Any]) -> None:
    figures = ["PRECISION", "RECALL", "F1", "HEADS RIGHT", "ARCS"]
    rows = [
        [
            output.escaped(name),
            f"{about['precision']:.2f}",
            f"{about['recall']:.2f}",
            f"{about['f1']:.2f}",
            f"{about['heads_correct']:,}",
            f"{about['gold']:,}",
        ]
        for name, about in output.types_of(dict(metrics)).items()
    ]
    if rows:
        output.print_table(["RELATION", *figures], rows, right=figures)
    for suffix, of in (
        ("", f"{metrics['tokens']:,} tokens"),
        ("_without_punctuation", f"{metrics['words']:,} words"),
    ):
        las = metrics[f"las{suffix}"]
        output.say(
            f"UAS [bold]{metrics[f'uas{suffix}']:.2f}[/]"
            + ("" if las is None else f"   LAS [bold]{las:.2f}[/]")
            + f"   of {of}{', punctuation left out' if suffix else ''}"
        )
    output.say(f"{metrics['sentences_correct']:,} of {metrics['sentences']:,} sentences without an error")


def print_evaluation(result: Mapping[str, Any]) -> None:
    """Print the scores of versions, and how sure their differences are."""
    for row in result["models"]:
        version = f":{row['version']}" if "version" in row else ""
        output.say(f"[bold]{output.escaped(row['model'])}{version}[/]")
        print_scores(row["metrics"])
    name = "UAS" if all(row["metrics"].get("score") == "uas" for row in result["models"]) else "F1"
    for pair in result.get("pairs") or ():
        bootstrap = pair["bootstrap"]
        output.say(
            f"{pair['head']} against {pair['base']}: {name} {bootstrap['difference']:+.2f}"
            f" ({100 * bootstrap['confidence']:.0f} % interval {bootstrap['low']:+.2f} to {bootstrap['high']:+.2f},"
            f" p = {bootstrap['p_value']:.3f})"
        )


def print_comparison(result: Mapping[str, Any]) -> None:
    """Print one row per trainer, best first."""
    score = str(result["score"])
    headers = ["NAME", "TRAINER", "SCORE", "PASSES", "SECONDS", "FEATURES", "CURVE"]
    curves = {each["name"]: each["points"] for each in result.get("curves") or ()}
    rows = sorted(result["table"], key=lambda row: -(row.get("score") or 0.0))
    output.say(f"[dim]score: {output.score_name(score)} on dev, best first[/]")
    output.print_table(
        headers,
        [
            [
                output.escaped(row["name"]),
                str(row["trainer"]),
                _number(row.get("score"), 2),
                _number(row.get("passes"), 0),
                _number(row.get("seconds"), 1),
                _number(row.get("active_features"), 0),
                output.sparkline(_scores(curves.get(row["name"], ()))) or output.escaped(_reason(row)),
            ]
            for row in rows
        ],
        right=headers[2:6],
    )


def print_search(result: Mapping[str, Any], *, takes_text: bool) -> None:
    """Print one row per candidate, best first."""
    rows = sorted(result["table"], key=lambda row: -(row.get("mean") or 0.0))
    fields = sorted(rows[0]["values"])
    output.print_table(
        [*fields, "SCORE", "DEVIATION", "SECONDS", ""],
        [
            [
                *(output.escaped(row["values"][field]) for field in fields),
                _number(row.get("mean"), 2),
                _number(row.get("deviation"), 2),
                _number(row.get("seconds"), 1),
                output.escaped(_reason(row)),
            ]
            for row in rows
        ],
        right=[*fields, "SCORE", "DEVIATION", "SECONDS"],
    )
    best = result["best"]
    chosen = ", ".join(f"{name} = {value}" for name, value in (best.get("values") or {}).items())
    output.say(f"Best: {output.escaped(chosen)}")
    if trained := result.get("trained"):
        print_trained(trained, "", trained["train_seconds"])
        print_next_steps(trained, takes_text=takes_text)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _reason(row: Mapping[str, Any]) -> str:
    error = row.get("error")
    return str(error.get("message") or error.get("code")) if isinstance(error, Mapping) else str(error or "")


def _scores(points: Sequence[Mapping[str, Any]]) -> list[float]:
    return [float(point["dev_score"]) for point in points if point.get("dev_score") is not None]
