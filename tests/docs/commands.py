"""The reference of the command line, generated from the commands themselves."""

from collections.abc import Iterator
from typing import Any

import typer.main

from tagsmith.cli.main import app

HEADING = "## Commands"
#: Options that every command has, described once in the page.
COMMON = ("as_json", "url", "local", "dates", "help")


def command_line_page(page: str) -> str:
    """Give the page of the command line with the list of commands up to date."""
    before, _ = page.split(HEADING, 1)
    return before + HEADING + "\n" + "".join(_sections(typer.main.get_command(app), "tagsmith"))


def every_command() -> dict[str, Any]:
    """Give all commands that are shown, by their names."""
    return dict(_commands(typer.main.get_command(app), "tagsmith"))


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _sections(group: Any, path: str) -> Iterator[str]:
    for name, command in _commands(group, path):
        yield f"\n### `{name}`\n\n{_sentence(command.help)}\n\n```text\n{_usage(name, command)}\n```\n"
        rows = [
            _row(each)
            for each in command.params
            if each.name not in COMMON and not getattr(each, "hidden", False)
        ]
        if rows:
            yield "\n| | |\n|---|---|\n" + "".join(f"| {left} | {right} |\n" for left, right in rows)
        shared = [
            f"`{_flag(each)}`" for each in command.params if each.name in COMMON and each.name != "help"
        ]
        if shared:
            yield f"\nAlso: {', '.join(shared)}.\n"


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


def _usage(name: str, command: Any) -> str:
    arguments = [
        each.metavar or each.name.upper() for each in command.params if each.param_type_name == "argument"
    ]
    return " ".join([name, *arguments, "[OPTIONS]"])


def _row(parameter: Any) -> tuple[str, str]:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`", _described(parameter)
    names = ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts))
    value = f" `{parameter.metavar}`" if parameter.metavar else ""
    return names + value, _described(parameter)


def _described(parameter: Any) -> str:
    text = _sentence(parameter.help).replace("|", "\\|")
    default = parameter.default
    if default in (None, False, ()) or callable(default) or "efault" in text:
        return text
    return f"{text} Default: `{default}`."


def _flag(parameter: Any) -> str:
    return str(max(parameter.opts, key=len))
