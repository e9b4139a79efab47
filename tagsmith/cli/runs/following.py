"""Jobs of a server from the outside: follow one to its end, print its result, delete things."""

from typing import TYPE_CHECKING, Any

from tagsmith.cli import output
from tagsmith.cli.errors import FAILURE, INTERRUPTED, CommandError
from tagsmith.cli.runs import results
from tagsmith.cli.runs.watching import ProgressLine

if TYPE_CHECKING:
    from tagsmith.client import Client
    from tagsmith.wire import Job


#: Kinds that write a file, and what they have done with its sentences.
WITH_OUTPUT = {"tag": "Tagged", "rank": "Listed"}


def followed(client: "Client", job: "Job", *, as_json: bool, live: bool) -> int:
    """Follow a job and print its result. Ctrl-C leaves the job running and says how to return to it."""
    ended = to_end(client, job, live=live, stderr=as_json)
    if ended is None:
        return INTERRUPTED
    job = ended
    if as_json:
        output.print_json(job)
        return 0 if job.state == "succeeded" else FAILURE
    if job.state == "succeeded":
        print_result(client, job)
        return 0
    raise failure_of(job)


def to_end(client: "Client", job: "Job", *, live: bool, stderr: bool) -> "Job | None":
    """Follow a job and return it when it has ended; None after Ctrl-C, which leaves it running."""
    with ProgressLine(live=live, stderr=stderr) as line:
        try:
            _follow(client, job, line)
        except KeyboardInterrupt:
            line.__exit__(None, None, None)
            output.say("Detached; the job goes on.", stderr=True)
            output.say(_ways_back(job), stderr=True)
            return None
    return client.job(job.id)


def _follow(client: "Client", job: "Job", line: ProgressLine) -> None:
    for event in client.follow(job.id):
        if event.type in ("progress", "pass"):
            line.update(event.data, pass_done=event.type == "pass")
        elif event.type == "message":
            line.message(event.message, warning=getattr(event, "level", "info") == "warning")


def print_result(client: "Client", job: "Job") -> None:
    """Print what a job has achieved, or why it failed."""
    if job.state != "succeeded" or job.result is None:
        if job.state == "failed":
            output.say(f"[red]{output.escaped(failure_of(job).message)}[/]")
        return
    if job.kind == "train":
        results.print_trained(job.result, "", job.worked_seconds)
        results.print_next_steps(job.result, takes_text=_takes_text(client, job))
    elif job.kind == "evaluate":
        results.print_evaluation(job.result)
    elif job.kind == "compare":
        results.print_comparison(job.result)
    elif job.kind == "tune":
        results.print_search(job.result, takes_text=_takes_text(client, job))
    elif job.kind in WITH_OUTPUT:
        sentences = output.counted(job.result["sentences"], "sentence")
        output.say(f"{WITH_OUTPUT[job.kind]} {sentences}.")
        output.say(f"[dim]Get them:[/]  tagsmith jobs output {output.short_id(job.id)} -o FILE")
    else:
        output.print_json(job.result)


def _takes_text(client: "Client", job: "Job") -> bool:
    """Whether the tokens of a trained model are words and nothing else. A deleted corpus leaves this open."""
    from tagsmith.client import ApiError  # noqa: PLC0415

    try:
        return len(client.corpus(job.spec["corpus"]).columns) == 1
    except ApiError:
        return True


def failure_of(job: "Job") -> CommandError:
    """The error of a job that did not succeed."""
    error: dict[str, Any] = job.error or {}
    reason = error.get("message") or error.get("detail") or error.get("code") or ""
    name = f"Job {output.short_id(job.id)}"
    if job.state == "cancelled":
        return CommandError(f"{name} was cancelled.", code=FAILURE)
    places = [str(each.get("detail") or each.get("reason") or each) for each in error.get("errors") or ()]
    return CommandError(f"{name} failed: {reason or 'see its events'}", places, code=FAILURE)


def detached(job: "Job", *, as_json: bool) -> int:
    """Print that a job has started, and how to return to it."""
    if as_json:
        output.print_json(job)
        return 0
    output.say(f"Started job [bold]{output.short_id(job.id)}[/].")
    output.say(_ways_back(job))
    return 0


def _ways_back(job: "Job") -> str:
    short = output.short_id(job.id)
    return f"[dim]Watch:[/]  tagsmith jobs watch {short}    [dim]Cancel:[/]  tagsmith jobs cancel {short}"
