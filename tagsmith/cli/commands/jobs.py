"""`jobs`: list, show, watch and control jobs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagsmith.cli import complete, output
from tagsmith.cli.connection import connected, job_of
from tagsmith.cli.errors import CommandError
from tagsmith.cli.files import target_of
from tagsmith.cli.options import ListOptions, ServerOptions, command, group
from tagsmith.cli.runs import following

if TYPE_CHECKING:
    from tagsmith.client import Client
    from tagsmith.wire import Job


@dataclass(frozen=True, kw_only=True)
class JobOptions(ServerOptions):
    """A command for one job."""

    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB", help="Its id, or the last six characters.", autocompletion=complete.jobs
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class ListJobsOptions(ListOptions):
    """Options of `jobs ls`."""

    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="Only jobs in this state, for example running.")
    ] = None
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only jobs of this model.", autocompletion=complete.models),
    ] = None


@dataclass(frozen=True, kw_only=True)
class JobOutputOptions(JobOptions):
    """Options of `jobs output`."""

    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Default: standard output.")
    ] = None


def show_all(options: ListJobsOptions) -> int:
    """List jobs, newest first."""
    with connected(options.url) as client:
        jobs = []
        for job in client.jobs(state=options.state, model=options.model):
            jobs.append(job)
            if len(jobs) == options.limit:
                break
    if options.as_json:
        output.print_json(jobs)
        return 0
    rows = [
        [
            output.short_id(job.id),
            job.kind,
            job.model or "",
            output.state(job.state),
            _progress(job),
            _score(job),
            output.when(job.started_at or job.created_at, dates=options.dates),
        ]
        for job in jobs
    ]
    output.print_table(
        ["JOB", "KIND", "MODEL", "STATE", "PROGRESS", "SCORE", "STARTED"],
        rows,
        right=["SCORE"],
        empty="No job yet. Start one: tagsmith train data.conll --model ner",
    )
    return 0


def show(options: JobOptions) -> int:
    """Show one job: its state, spec and result."""
    with connected(options.url) as client:
        job = job_of(client, options.job)
        if options.as_json:
            output.print_json(job)
            return 0
        _print_job(job)
        if job.done:
            following.print_result(client, job)
        else:
            output.say(f"[dim]Watch it:[/] tagsmith jobs watch {output.short_id(job.id)}")
    return 0


def watch(options: JobOptions) -> int:
    """Follow a job until it ends."""
    with connected(options.url) as client:
        job = job_of(client, options.job)
        return following.followed(client, job, as_json=options.as_json, live=True)


def write_output(options: JobOutputOptions) -> int:
    """Write the file that a tag or rank job has made."""
    with connected(options.url) as client:
        job = job_of(client, options.job)
        with target_of(options.out, "--out") as target:
            target.write(client.output(job.id))
    return 0


def cancel(options: JobOptions) -> int:
    """Cancel a job."""
    return _controlled(options, "cancel")


def pause(options: JobOptions) -> int:
    """Pause a job; it keeps its progress."""
    return _controlled(options, "pause")


def resume(options: JobOptions) -> int:
    """Continue a paused job."""
    return _controlled(options, "resume")


def retry(options: JobOptions) -> int:
    """Start a failed or cancelled job again, as a new job."""
    return _controlled(options, "retry")


def remove(options: JobOptions) -> int:
    """Delete a job that has ended, with its events."""
    with connected(options.url) as client:
        job = job_of(client, options.job)
        client.delete_job(job.id)
    if not options.as_json:
        output.say(f"Deleted job {output.short_id(job.id)}.")
    return 0


def _controlled(options: JobOptions, action: str) -> int:
    with connected(options.url) as client:
        job = _act(client, action, job_of(client, options.job).id)
    if options.as_json:
        output.print_json(job)
    elif action == "retry":
        output.say(
            f"Started {output.short_id(job.id)}. Watch it: tagsmith jobs watch {output.short_id(job.id)}"
        )
    else:
        output.say(f"Job {output.short_id(job.id)} is {output.state(job.state)}.")
    return 0


def _act(client: "Client", action: str, identifier: str) -> "Job":
    actions: dict[str, Any] = {
        "cancel": client.cancel,
        "pause": client.pause,
        "resume": client.resume,
        "retry": client.retry,
    }
    if action not in actions:
        raise CommandError(f"A job has no action {action}.")
    job: Job = actions[action](identifier)
    return job


def _progress(job: "Job") -> str:
    if job.state == "succeeded":
        return ""
    fraction = (job.progress or {}).get("fraction") or 0.0
    return f"{output.small_bar(fraction)} {100 * fraction:.0f} %" if fraction else ""


def _score(job: "Job") -> str:
    result = job.result or {}
    metrics = (result.get("metrics") or {}).get("dev") or (job.progress or {}).get("dev")
    if job.kind == "evaluate" and result.get("models"):
        metrics = result["models"][0]["metrics"]
    score = output.score_of(metrics)
    return f"{score[1]:.2f}" if score else ""


def _print_job(job: "Job") -> None:
    about = job.model or job.spec.get("corpus", "")
    output.say(f"[bold]{job.id}[/]  {job.kind} {output.escaped(about)}  {output.state(job.state)}")
    trainer = job.spec.get("trainer") or {}
    features = job.spec.get("features") or {}
    facts = [
        f"created {output.when(job.created_at)}",
        f"worked {output.duration(job.worked_seconds)}" if job.worked_seconds else "",
        f"trainer {trainer['kind']}" if trainer.get("kind") else "",
        f"preset {features['preset']}"
        if features.get("preset")
        else "templates"
        if features.get("templates")
        else "",
    ]
    output.say("  " + " · ".join(filter(None, facts)))
    if (fraction := (job.progress or {}).get("fraction")) and not job.done:
        output.say(f"  {output.small_bar(fraction, 20)} {100 * fraction:.0f} %")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    jobs = group("List, watch and control jobs.")
    command(jobs, "ls")(show_all)
    command(jobs, "show")(show)
    command(jobs, "watch")(watch)
    command(jobs, "output")(write_output)
    command(jobs, "cancel")(cancel)
    command(jobs, "pause")(pause)
    command(jobs, "resume")(resume)
    command(jobs, "retry")(retry)
    command(jobs, "rm")(remove)
    app.add_typer(jobs, name="jobs", rich_help_panel="Manage")
