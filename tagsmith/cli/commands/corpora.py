"""`corpora`: upload, list, show and delete corpora; `corpus generate` writes one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagsmith.cli import complete, output, specs
from tagsmith.cli.connection import connected, uploaded
from tagsmith.cli.errors import CommandError
from tagsmith.cli.files import target_of
from tagsmith.cli.options import InputOptions, ListOptions, ServerOptions, command, group

if TYPE_CHECKING:
    from tagsmith.wire import CorpusInfo, CorpusStatistics, TreeStatistics

#: Labels and lengths that `show` lists.
SHOWN_LABELS = 20
BAR_WIDTH = 24


@dataclass(frozen=True, kw_only=True)
class PushOptions(InputOptions, ServerOptions):
    """Options of `corpora push`."""

    files: Annotated[list[Path], typer.Argument(metavar="FILE...", exists=True, dir_okay=False)]
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the corpus; default: that of the file.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(ServerOptions):
    """A command for one corpus."""

    corpus: Annotated[
        str,
        typer.Argument(metavar="CORPUS", help="A name, name:2 or an id.", autocompletion=complete.corpora),
    ]


@dataclass(frozen=True, kw_only=True)
class ListCorporaOptions(ListOptions):
    """Options of `corpora ls`."""

    name: Annotated[str | None, typer.Option(metavar="NAME", help="Only uploads of this name.")] = None


@dataclass(frozen=True, kw_only=True)
class RemoveCorpusOptions(CorpusOptions):
    """Options of `corpora rm`."""

    force: Annotated[
        bool, typer.Option("--force", help="Delete it although a served version was trained on it.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class GenerateOptions:
    """Options of `corpus generate`."""

    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="references, addresses, people, chunks, segments, trees or crossing-trees."
        ),
    ] = "references"
    sentences: Annotated[int, typer.Option(metavar="N", help="How many.")] = 2000
    seed: Annotated[int, typer.Option(metavar="N", help="Same seed, same bytes.")] = 1
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: standard output.")] = None


def push(options: PushOptions) -> int:
    """Upload labelled files. The format is recognised, or given by --format."""
    if options.name is not None and len(options.files) > 1:
        raise CommandError("--name names one corpus. Give one file.")
    format_options = specs.options_of(options.format_options, repair=options.repair)
    made = []
    try:
        with connected(options.url) as client:
            for path in options.files:
                corpus = uploaded(client, path, options.format, format_options, options.name)
                made.append(corpus)
                if not options.as_json:
                    print_read(str(path), corpus, client.report(corpus.id))
    finally:
        # What was stored before a failure is reported too.
        if options.as_json and made:
            output.print_json(made[0] if len(options.files) == 1 else made)
    if len(made) == 1 and not options.as_json:
        name = output.escaped(made[0].name)
        output.say(f"[dim]Train on it:[/]  tagsmith train {name} --model NAME")
    return 0


def show_all(options: ListCorporaOptions) -> int:
    """List corpora, newest first."""
    found = []
    with connected(options.url) as client:
        for corpus in client.corpora():
            if options.name in (None, corpus.name):
                found.append(corpus)
            if len(found) == options.limit:
                break
    if options.as_json:
        output.print_json(found)
        return 0
    headers = ["NAME", "FORMAT", "SENTENCES", "TOKENS", "LABELS", "UPLOADED"]
    rows = [
        [
            output.escaped(_numbered(corpus)),
            corpus.format,
            f"{corpus.sentences:,}",
            f"{corpus.tokens:,}",
            "trees" if corpus.trees else str(len(corpus.labels)),
            output.when(corpus.created_at, dates=options.dates),
        ]
        for corpus in found
    ]
    empty = "No corpus yet. Upload one: tagsmith corpora push data.conll"
    output.print_table(headers, rows, right=headers[2:5], empty=empty)
    return 0


def show(options: CorpusOptions) -> int:
    """Show one corpus: columns, labels, lengths, faults."""
    with connected(options.url) as client:
        corpus = client.corpus(options.corpus)
        report = client.report(corpus.id)
    if options.as_json:
        output.print_json({**output.plain(corpus), "report": output.plain(report)})
        return 0
    output.say(
        f"[bold]{output.escaped(_numbered(corpus))}[/]  {corpus.id}  uploaded {output.when(corpus.created_at)}"
    )
    output.say(
        f"  {corpus.format}, {output.counted(corpus.sentences, 'sentence')}, "
        f"{output.counted(corpus.tokens, 'token')}, columns {output.escaped(', '.join(corpus.columns))}, "
        f"{output.size(corpus.size_bytes)}"
    )
    print_faults(report)
    if report.duplicate_sentences:
        output.say(f"  {report.duplicate_sentences:,} sentences occur more than once")
    if report.conflicting_sentences:
        output.say(f"  [yellow]![/] {report.conflicting_sentences:,} sentences are labelled in several ways")
    if report.trees is not None:
        _print_trees(report.trees, report.sentences)
    counts = report.label_counts if report.trees is None else report.trees.relation_counts
    _print_counts("LABEL" if report.trees is None else "RELATION", counts)
    return 0


def _print_counts(title: str, found: Mapping[str, int]) -> None:
    """Print how many tokens have each label or relation, as bars."""
    counts = sorted(found.items(), key=lambda item: -item[1])
    most = counts[0][1] if counts else 1
    rows = [
        [output.escaped(label), f"{count:,}", "█" * max(1, round(BAR_WIDTH * count / most))]
        for label, count in counts[:SHOWN_LABELS]
    ]
    output.print_table([title, "TOKENS", ""], rows, right=["TOKENS"], empty="It has no labels.")
    if len(counts) > SHOWN_LABELS:
        output.say(f"[dim]and {len(counts) - SHOWN_LABELS} more {title.lower()}s[/]")


def _print_trees(trees: "TreeStatistics", sentences: int) -> None:
    """Print how many sentences have crossing arcs, and how many have several roots."""
    output.say(
        f"  {trees.nonprojective_sentences:,} of {output.counted(sentences, 'sentence')} have crossing arcs, "
        f"{trees.several_roots_sentences:,} have several roots"
    )


def remove(options: RemoveCorpusOptions) -> int:
    """Delete a corpus. A name deletes its newest upload."""
    with connected(options.url) as client:
        corpus = client.corpus(options.corpus)
        client.delete_corpus(corpus.id, force=options.force)
    if not options.as_json:
        output.say(f"Deleted {output.escaped(_numbered(corpus))} ({corpus.id}).")
    return 0


def generate(options: GenerateOptions) -> int:
    """Write a labelled corpus: same seed, same bytes."""
    from tagsmith.core.corpus.synthetic.generate import generate as chunks_of  # noqa: PLC0415

    chunks = chunks_of(options.kind, options.sentences, options.seed)
    with target_of(options.out, "--out") as out:
        out.writelines(chunks)
    return 0


def print_read(source: str, corpus: "CorpusInfo", report: "CorpusStatistics") -> None:
    """Print what was found in a file."""
    print_summary(source, corpus.format, corpus.columns, list(report.label_counts), report)


def print_summary(
    source: str, format_name: str, columns: list[str], labels: list[str], report: "CorpusStatistics"
) -> None:
    """Print one line about a corpus, and its faults."""
    scheme = f" ({report.label_scheme})" if report.label_scheme else ""
    kinds = _types(labels) if report.trees is None else _relations(report.trees)
    output.say(
        f"Read {output.escaped(source)}: {format_name}, {output.counted(report.sentences, 'sentence')}, "
        f"{output.counted(report.tokens, 'token')}, {output.columns(len(columns))}, "
        f"{output.escaped(kinds)}{scheme}"
    )
    print_faults(report)


def print_faults(report: "CorpusStatistics") -> None:
    """Print how many labels break their coding, and where the first one is."""
    if not report.bio_fault_count:
        return
    first = report.bio_faults[0]
    output.say(
        f"  [yellow]![/] {report.bio_fault_count:,} labels break {report.label_scheme or 'their coding'} "
        f"(first: {output.escaped(first.label)} in sentence {first.sentence + 1:,}). "
        "They are read as the CoNLL scorer reads them; --repair corrects them."
    )


def _types(labels: list[str]) -> str:
    """The types that labels mark, or how many labels there are."""
    types = list(dict.fromkeys(label.split("-", 1)[1] for label in labels if "-" in label[1:2]))
    if types and len(types) <= 8:
        return f"labels {' '.join(types)}"
    return f"{len(types)} types" if types else f"{len(labels)} labels"


def _relations(trees: "TreeStatistics") -> str:
    return f"trees with {output.counted(len(trees.relation_counts), 'relation')}"


def _numbered(corpus: "CorpusInfo") -> str:
    number = getattr(corpus, "number", None)
    return corpus.name if number is None else f"{corpus.name}:{number}"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    corpora = group("Upload, list and delete corpora.")
    command(corpora, "push")(push)
    command(corpora, "ls")(show_all)
    command(corpora, "show")(show)
    command(corpora, "rm")(remove)
    app.add_typer(corpora, name="corpora", rich_help_panel="Manage")
    corpus = group("Write a sample corpus.")
    command(corpus, "generate")(generate)
    app.add_typer(corpus, name="corpus", rich_help_panel="Manage")
