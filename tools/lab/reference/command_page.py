"""The commands and their options, from the same definitions that `--help` shows."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import click

from camgraph.tools.cli import COMMANDS, main
from camgraph.tools.lab.reference.markdown import code, sentence, table


def command_page() -> Iterator[str]:
    yield "# Reference: commands"
    yield ""
    yield "Every command with its arguments and options. `camgraph COMMAND --help` shows the same. The"
    yield "[exit statuses](exit_status.md) are those of all commands."
    yield ""
    yield from table(
        ("command", "what it does"), ((f"[`{name}`](#camgraph-{name})", one.help) for name, one in COMMANDS.items())
    )
    root = click.Context(main, info_name="camgraph")
    for name in main.list_commands(root):
        command = main.get_command(root, name)
        assert command is not None
        yield from _command(command, click.Context(command, parent=root, info_name=name))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield from ("", f"## {context.command_path}", "")
    yield "```text"
    yield " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield "```"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield from ("", sentence(paragraph.replace("\b\n", "")))
    rows = [_row(option) for option in command.params if isinstance(option, click.Option) and not option.hidden]
    if rows:
        yield ""
        yield from table(("option", "default", "meaning"), rows)
    if command.epilog:
        yield from ("", "```text", *command.epilog.replace("\b\n", "").splitlines(), "```")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _command(below, click.Context(below, parent=context, info_name=name))


def _row(option: click.Option) -> tuple[str, str, str]:
    names = ", ".join([*option.opts, *option.secondary_opts])
    shown = names if option.is_flag else f"{names} {option.metavar or _kind(option.type)}"
    about = sentence(option.help or "")
    return (
        code(shown),
        _default(option),
        f"{about} Repeatable." if option.multiple and "epeatable" not in about else about,
    )


def _kind(kind: click.types.ParamType[Any]) -> str:
    """`1..20`, `mermaid|dot` or the name of the type: worded here, since each release of click words it differently."""
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    if isinstance(kind, click.IntRange | click.FloatRange):
        least = "" if kind.min is None else str(kind.min)
        return f"{least}..{'' if kind.max is None else kind.max}"
    return kind.name.upper()


def _default(option: click.Option) -> str:
    """Only if `--help` shows it: other defaults are worked out, and their meaning says how."""
    if not option.show_default or option.is_flag or option.default is None:
        return ""
    if isinstance(option.show_default, str):
        return option.show_default
    if isinstance(option.default, list | tuple):
        return code(", ".join(map(str, option.default)))
    return code(
        option.default if isinstance(option.default, str) else json.dumps(option.default, default=str).strip('"')
    )
