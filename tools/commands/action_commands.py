"""`camgraph actions`: the actions that rules may `use`, their parameters and their definitions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import click

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.rules.library import ACTIONS, library, library_text
from camgraph.stages.rules.parameters import kind_of
from camgraph.stages.rules.rule_file import TemplateDefinition

WIDEST = 100


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def actions(name: str | None, as_json: bool) -> None:
    """List the actions that rules may `use`, or show the action NAME with its definition.

    `camgraph help actions` draws each, and says how far it may be trusted.
    """
    known = library().templates
    if name is not None and name not in known:
        raise UserError(
            f"no action is called {name}{did_you_mean(name, known) or '; `camgraph actions` lists them'}",
            error_id="name-unknown",
        )
    shown = known if name is None else {name: known[name]}
    if as_json:
        described = [_as_json(one, definition) for one, definition in shown.items()]
        click.echo(json.dumps(described if name is None else described[0], indent=2))
        return
    for one, definition in shown.items():
        click.echo("\n".join(_brief(one, definition) if name is None else _whole(one, definition)))


def _brief(name: str, definition: TemplateDefinition) -> Iterator[str]:
    given = ", ".join(f"{one}: {_default(value)}" for one, value in _parameters(definition).items())
    yield _wrapped(f"{name} ({given})" if given else name, "")
    yield _wrapped(definition.about, "  ")
    yield from _caution(definition, "  ")


def _whole(name: str, definition: TemplateDefinition) -> Iterator[str]:
    yield _wrapped(f"{name}: {definition.about}", "")
    yield from _caution(definition, "")
    parameters = _parameters(definition)
    yield "\nwith:" if parameters else "\nwith: no parameters"
    for one, value in parameters.items():
        yield _wrapped(f"{one}: {value['kind']} ({_default(value)})", "  ")
        yield _wrapped(value["about"], "    ")
    yield f"\nIn a file of rules:\n  {rule_line(name, definition)}"
    yield f"\nIts definition:\n{definition_text(name)}"


def _caution(definition: TemplateDefinition, indent: str) -> Iterator[str]:
    if definition.caution:
        yield _wrapped(f"Do not rely on it: {definition.caution}.", indent)


def rule_line(name: str, definition: TemplateDefinition) -> str:
    """A line for `rules`, with a value for each parameter that needs one: a zone or line of that name."""
    needed = [
        f"{one}: my_{value['kind']}" for one, value in _parameters(definition).items() if value["default"] is None
    ]
    return f"- {{use: {name}, with: {{{', '.join(needed)}}}}}" if needed else f"- {{use: {name}}}"


def definition_text(name: str) -> str:
    """The lines of `actions.yaml` that define an action."""
    lines = library_text(ACTIONS).splitlines()
    start = lines.index(f"  {name}:")
    body = takewhile(lambda line: not line or line.startswith("   "), lines[start + 1 :])
    return "\n".join([lines[start], *body]).rstrip()


def _as_json(name: str, definition: TemplateDefinition) -> dict[str, Any]:
    return {
        "name": name,
        "about": definition.about,
        "caution": definition.caution,
        "parameters": _parameters(definition),
        "rule": rule_line(name, definition),
        "definition": definition_text(name),
    }


def _parameters(definition: TemplateDefinition) -> dict[str, dict[str, Any]]:
    return {
        name: {"kind": kind_of(one), "default": one.default, "about": one.about}
        for name, one in definition.parameters.items()
    }


def _default(parameter: dict[str, Any]) -> str:
    return "required" if parameter["default"] is None else f"default {parameter['default']}"


def _wrapped(text: str, indent: str) -> str:
    width = min(WIDEST, shutil.get_terminal_size().columns)
    return click.wrap_text(text, width, initial_indent=indent, subsequent_indent=indent + "  ")
