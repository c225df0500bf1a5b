"""`camgraph check`, `graph` and `schema`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem
from camgraph.pipeline.graph import load_graph, plan_of
from camgraph.pipeline.graph.drawing import dot, mermaid
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.graph.planning import Graph
from camgraph.pipeline.graph.remarks import remarks_on
from camgraph.pipeline.graph.schema import graph_schema
from camgraph.pipeline.graph.shared_memory import in_words, memory_need
from camgraph.pipeline.outbox.outbox_folder import outbox_folder, why_unusable
from camgraph.pipeline.registry import find_stage, stage_names
from camgraph.pipeline.system.disk import read_text
from camgraph.pipeline.system.paths import SHARED_MEMORY
from camgraph.pipeline.system.scarcity import require_processes
from camgraph.tools.commands.env_file_option import env_file_option
from camgraph.tools.commands.local_path import LocalPath

graph_argument = click.argument("graph_file", metavar="GRAPH", type=LocalPath())


variables_option = env_file_option("NAME=VALUE lines for `${NAME}` in GRAPH.")


@click.command()
@graph_argument
@variables_option
def check(graph_file: Path, env_files: tuple[Path, ...]) -> None:
    """Report all mistakes in GRAPH, and the resources that it needs to run.

    Files that it names are looked at, cameras are not opened. GRAPH may also be a file of rules by itself.
    """
    rules = _rules_alone(graph_file)
    if rules is not None:
        for line in rules:
            click.echo(line)
        return
    environ, remarks = Variables(env_files).anew()
    for line in checked_lines(load_graph(graph_file, environ=environ, strict=True), remarks):
        click.echo(line)


def checked_lines(graph: Graph, remarks: Iterable[str]) -> Iterator[str]:
    """The report on a correct graph. Raises EnvironmentProblem if the machine is not fit for it."""
    yield _summary(graph)
    yield from (*remarks, *graph.source.remarks, *remarks_on(graph), *_not_known(graph))
    if not graph.in_process:
        require_processes()
    need = memory_need(graph)
    yield from in_words(need)
    _require_outbox_folder(graph)
    if not need.fits:
        raise EnvironmentProblem(
            f"{SHARED_MEMORY} is too small: make it larger (docker: --shm-size), or use fewer or smaller cameras",
            error_id="shared-memory",
        )


_RULES = re.compile(r"^rules\s*:|^\s*-\s*\{?\s*(id|use|when)\s*:", re.MULTILINE)
"""The list of rules, or one of them if somebody has mistyped the list's name."""


def _rules_alone(path: Path) -> list[str] | None:
    """The report on a correct file of rules, None for any other. Raises GraphError with all that is wrong with it."""
    try:
        text = read_text(path) if path.is_file() else ""
    except (OSError, UnicodeDecodeError):  # a graph with this file reports it as well
        return None
    if not _RULES.search(text) or re.search(r"^(stages|cameras)\s*:", text, re.MULTILINE):
        return None
    from camgraph.stages.rules.library import hiding  # noqa: PLC0415 - with it comes NumPy
    from camgraph.stages.rules.rule_set import read_rules  # noqa: PLC0415

    rules = read_rules(path)
    message = f"{path}: {_counted(len(rules.rules), 'rule')}: no mistakes; its cameras are known where a graph names it"
    return [message, *hiding(rules.file), *rules.remarks]


def _require_outbox_folder(graph: Graph) -> None:
    """Raises EnvironmentProblem if events could not be kept, with the place of the first sink that wants some."""
    folder = outbox_folder(plan_of(graph))
    why = why_unusable(folder) if folder else ""
    if why:
        sink = next(iter(graph.completed.event_filters))
        raise EnvironmentProblem(str(graph.source.problem(("stages", sink), why, at_key=True)), error_id="sink-trial")


def _not_known(graph: Graph) -> Iterator[str]:
    """Facts that show only when the graph runs, as its stages name them."""
    for node in graph.completed.nodes:
        if node.stage and (unknown := node.stage.unknown_before_run(node.settings)):
            yield f"{node.name}: not known before the run: {unknown}"


def _summary(graph: Graph) -> str:
    processes = 0 if graph.in_process else sum(len(group.shards) for group in graph.groups)
    placed = _counted(processes, "process", "processes") if processes else "one process"
    cameras, stages = _counted(len(graph.cameras), "camera"), _counted(len(graph.file.stages), "stage")
    return f"{graph.source.file}: {cameras}, {stages}, {placed}: no mistakes"


def _counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


@click.command("graph")
@graph_argument
@variables_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["mermaid", "dot"]),
    default="mermaid",
    show_default=True,
    help="The language of the drawing.",
)
def graph(graph_file: Path, form: str, env_files: tuple[Path, ...]) -> None:
    """Draw GRAPH with its processes, and on each edge its type, policy and depth (dotted: a direct call)."""
    drawn = load_graph(graph_file, environ=Variables(env_files).anew()[0])
    click.echo(mermaid(drawn) if form == "mermaid" else dot(drawn), nl=False)


@click.command()
@click.option("--builtin", is_flag=True, help="Leave out the stages of other packages.")
def schema(builtin: bool) -> None:
    """Print the JSON Schema of graph files, with the settings of all installed stages.

    Editors take it from the first line of a graph file: # yaml-language-server: $schema=graph.schema.json
    """
    uses = stage_names("camgraph") if builtin else [use for use in stage_names() if _usable(use)]
    click.echo(json.dumps(graph_schema(uses), indent=2))


def _usable(use: str) -> bool:
    """Leave out broken packages, so that the schema has all others."""
    try:
        find_stage(use)
    except CamgraphError as error:
        click.echo(f"left out: {error}", err=True)
        return False
    return True
