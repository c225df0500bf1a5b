"""`camgraph stages`: the stages that a graph can use, their settings, and new ones."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from typing import Any

import click
from pydantic import BaseModel

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.graph.schema_walk import described, schema_of
from camgraph.pipeline.registry import AnyStage, find_stage, stage_distribution, stage_names
from camgraph.pipeline.stage import Source, Stage
from camgraph.tools.commands.new_stage import new


class _StagesGroup(click.Group):
    """`stages NAME` describes the stage of that name; no stage is called as one of the commands here."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or _describing(cmd_name)


@click.group(cls=_StagesGroup, invoke_without_command=True, subcommand_metavar="[NAME | new ...]")
@click.pass_context
def stages(ctx: click.Context) -> None:
    """List all installed stages, describe the settings and counters of the stage NAME, or write a new one.

    `camgraph help write_a_stage` explains how to write a stage of your own.
    """
    if ctx.invoked_subcommand is None:
        click.echo("\n".join(_list()))


stages.add_command(new)


def _describing(name: str) -> click.Command:
    def describe() -> None:
        click.echo("\n".join(_description(name, find_stage(name))))

    return click.Command(name, callback=describe, help=f"Describe the settings and counters of the stage {name}.")


def _list() -> Iterator[str]:
    rows = [_row(use) for use in stage_names() if not is_added_by_itself(use)]
    width = max(len(row[0]) for row in rows)
    for use, takes_and_makes, package, line in rows:
        yield f"{use:<{width}}  {takes_and_makes}  [{package}]"
        yield f"{'':<{width}}  {line}"


def is_added_by_itself(use: str) -> bool:
    try:
        kind = find_stage(use)
    except EnvironmentProblem:
        return False
    return issubclass(kind, Stage) and kind.added_by_itself


def _row(use: str) -> tuple[str, str, str, str]:
    try:
        kind = find_stage(use)
    except EnvironmentProblem as error:
        return use, "?", stage_distribution(use), f"cannot be used: {error}"
    return use, flow(kind), stage_distribution(use), about(kind)


def flow(kind: AnyStage) -> str:
    """The types of messages that a stage takes and makes: `Frame -> Tensor`."""
    made = ", ".join(made.__name__ for made in kind.outputs) or "nothing"
    if issubclass(kind, Source):
        return f"cameras -> {made}"
    inputs = kind.inputs
    if isinstance(inputs, type):
        return f"{inputs.__name__} -> {made}"
    return f"{{{', '.join(f'{port}: {taken.__name__}' for port, taken in inputs.items())}}} -> {made}"


def about(kind: type[Any]) -> str:
    """The purpose of a stage, in one line: of its module, if that holds one stage, else of its class."""
    module = sys.modules[kind.__module__]
    stages_of_module = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Stage | Source) and one.__module__ == module.__name__
    ]
    return (inspect.getdoc(module if len(stages_of_module) == 1 else kind) or "").partition("\n")[0]


def _description(name: str, kind: AnyStage) -> Iterator[str]:
    yield f"{name}: {flow(kind)}  [{stage_distribution(name)}]"
    yield about(kind)
    yield from _fields("with", kind.settings_type)
    if issubclass(kind, Source):
        yield from _fields("cameras", kind.camera_type)
    if kind.counts:
        yield from ("", "counters:", *(f"  {name}: {meaning}" for name, meaning in kind.counts.items()))


def _fields(title: str, model: type[BaseModel]) -> Iterator[str]:
    schema = schema_of(model)
    yield ""
    yield f"{title}:" if described(schema, ()) else f"{title}: no settings"
    yield from _keys(schema, schema, "  ")


def _keys(root: dict[str, Any], part: dict[str, Any], indent: str) -> Iterator[str]:
    """Each setting with its kind and its description; settings of their own below it."""
    for key, field in part.get("properties", {}).items():
        below = _settings_below(root, field)
        kind = "its own settings" if below else _bounds(field, key in part.get("required", ()))
        yield f"{indent}{key}: {kind}"
        if field.get("description"):
            yield f"{indent}    {field['description']}"
        if below:
            yield from _keys(root, below, indent + "  ")


def _settings_below(root: dict[str, Any], field: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of a setting that holds settings; None for any other."""
    name = str(field.get("$ref", "")).rpartition("/")[2]
    found: dict[str, Any] = root.get("$defs", {}).get(name, {})
    return found if "properties" in found else None


def _bounds(field: dict[str, Any], required: bool) -> str:
    """Type, bounds and default of one setting, in a few words."""
    kinds = [_kind(branch) for branch in field.get("anyOf", [field])]
    default = "required" if required else f"default {_plain(field.get('default'))}"
    return f"{' or '.join(kinds)} ({default})"


def _kind(branch: dict[str, Any]) -> str:
    if "enum" in branch or "const" in branch:
        return " | ".join(str(value) for value in branch.get("enum", [branch.get("const")]))
    limits = [
        f"{sign} {branch[word]}"
        for word, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<"))
        if word in branch
    ]
    kind = str(branch.get("type") or branch.get("$ref", "value").rpartition("/")[2])
    return " ".join([kind, ", ".join(limits)]).strip()


def _plain(value: Any) -> str:
    if value is None:
        return "nothing"
    return json.dumps(value) if isinstance(value, bool | str) else f"{value}"
