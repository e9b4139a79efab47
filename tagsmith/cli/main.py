"""The `tagsmith` command.

tagsmith up                                              a server on this machine
tagsmith train people.conll --model people               train a model
echo "Ada wrote to Charles." | tagsmith tag people       use it
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tagsmith.cli import errors, output
from tagsmith.cli.commands import (
    backup,
    corpora,
    doctor,
    evaluate,
    experiments,
    explain,
    jobs,
    keys,
    models,
    rank,
    serve,
    tag,
    train,
)
from tagsmith.cli.errors import FAILURE, INTERRUPTED

app = typer.Typer(
    name="tagsmith",
    help="Train sequence taggers and serve them.",
    epilog="Most commands call a server: `tagsmith up` starts one. With --local they work on files.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from tagsmith.core.service import version  # noqa: PLC0415

        print(f"tagsmith {version.code_version()}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Train sequence taggers and serve them."""
    del version


train.register(app)
tag.register(app)
evaluate.register(app)
rank.register(app)
explain.register(app)
experiments.register(app)
corpora.register(app)
jobs.register(app)
models.register(app)
serve.register(app)
backup.register(app)
keys.register(app)
doctor.register(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        code = app(
            args=None if arguments is None else list(arguments), prog_name="tagsmith", standalone_mode=False
        )
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except typer.Abort:
        return FAILURE
    except BrokenPipeError:
        # The reader has seen enough. Python would complain about what it cannot write at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except Exception as error:
        found = errors.shown(error)
        if found is None:
            raise
        if found.message:
            output.print_error(found)
        return found.exit_code
    return code if isinstance(code, int) else 0
