"""The server behind a command, and how references are resolved: files, names, short ids."""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tagsmith.cli import config, recognition
from tagsmith.cli.errors import CommandError
from tagsmith.cli.options import DEFAULT_ALIAS

if TYPE_CHECKING:
    from tagsmith.client import Client
    from tagsmith.wire import CorpusInfo, Job

#: Uploads and the first request to a model that is not loaded take a while. Nothing takes longer than this.
TIMEOUT_S = 60.0
#: The name of a corpus that is read from there.
STANDARD_INPUT = "stdin"
FORBIDDEN, NOT_FOUND, UNPROCESSABLE = 403, 404, 422


@contextmanager
def connected(url: str | None, *, timeout_s: float = TIMEOUT_S) -> "Iterator[Client]":
    """Open a client of the chosen server."""
    from tagsmith.client import Client  # noqa: PLC0415

    try:
        client = Client(config.chosen_url(url), key=config.chosen_key(), timeout_s=timeout_s)
    except ValueError as error:
        raise CommandError(str(error)) from None
    with client:
        yield client


def job_of(client: "Client", reference: str) -> "Job":
    """Return a job that is given by its id or by the last characters of it."""
    from tagsmith.client import ApiError  # noqa: PLC0415

    try:
        return client.job(reference)
    except ApiError as error:
        if error.status not in (NOT_FOUND, UNPROCESSABLE):
            raise
    raise CommandError(f"There is no job {reference}. `tagsmith jobs ls` lists them.")


def given_corpus(
    client: "Client",
    reference: str,
    format: str | None,  # noqa: A002  # the word of the command line
    options: dict[str, str],
    name: str | None = None,
) -> "CorpusInfo":
    """Upload what is a file; find what is not."""
    path = Path(reference)
    if path.is_file() or reference == "-":
        return uploaded(client, path, format, options, name)
    if path.is_dir():
        raise CommandError(f"{reference} is a folder. Give a file.")
    if "/" in reference or path.suffix in recognition.SUFFIXES:
        raise CommandError(f"There is no file {reference}.")
    from tagsmith.client import ApiError  # noqa: PLC0415

    try:
        return client.corpus(reference)
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        raise CommandError(f"{error.detail} There is no file {reference} either.") from None


def uploaded(
    client: "Client",
    path: Path,
    format: str | None,  # noqa: A002  # the word of the command line
    options: dict[str, str],
    name: str | None = None,
) -> "CorpusInfo":
    """Upload a file, unless the newest upload of its name is the same. The server recognises its format."""
    from tagsmith.client.files import corpus_name  # noqa: PLC0415

    if str(path) == "-":
        return client.upload(sys.stdin.buffer.read(), name or STANDARD_INPUT, format, options)
    name = name or corpus_name(path)
    newest = next(client.corpora(name=name), None)
    if newest is not None and newest.sha256 == _sha256(path):
        read = client.inspect(path, name, format or "auto", options)
        if (read.format, read.options) == (newest.format, newest.options):
            return newest
    return client.upload(path, name, format, options)


def _sha256(path: Path) -> str:
    """Return the checksum of the text after decompression."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in recognition.decoded(file):
            digest.update(block)
    return digest.hexdigest()


def version_of(client: "Client", reference: str) -> tuple[str, int]:
    """Return model and version of `name`, `name:3`, `name@alias`."""
    name, colon, number = reference.partition(":")
    if colon:
        if not (number.isascii() and number.isdecimal()):
            raise CommandError(f"{reference}: the version must be a number, as in {name}:3.")
        return name, int(number)
    name, at, alias = reference.partition("@")
    model = client.model(name)
    if at:
        if alias not in model.aliases:
            known = ", ".join(model.aliases) or "none"
            raise CommandError(f"{name} has no alias {alias}. Its aliases: {known}.")
        return name, model.aliases[alias]
    chosen = model.aliases.get(DEFAULT_ALIAS) or model.latest
    if chosen is None:
        raise CommandError(f"{name} has no version. Train one with `tagsmith train`.")
    return name, chosen


def model_input(client: "Client", reference: str) -> recognition.ModelInput:
    """Return what a model takes. A key that may only tag cannot read it."""
    from tagsmith.client import ApiError  # noqa: PLC0415

    try:
        signature = client.version(*version_of(client, reference)).signature
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        return recognition.ModelInput()
    if signature is None:
        return recognition.ModelInput()
    characters = signature.tokenizer is not None and signature.tokenizer.kind == "characters"
    return recognition.ModelInput(
        len(signature.columns), characters, tuple(signature.columns), parses=signature.structure == "tree"
    )
