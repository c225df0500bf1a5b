"""`camgraph run`, `status` and `stop`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.graph import Graph, load_graph, plan_of
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.graph.graph_source import GraphSource
from camgraph.pipeline.graph.loading import Amend, unchanged
from camgraph.pipeline.graph.shared_memory import in_words, memory_need
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.supervision.control_client import ask, find_run
from camgraph.pipeline.system.scarcity import require_processes
from camgraph.tools.commands.env_file_option import env_file_option, show_remarks
from camgraph.tools.commands.health_check import EXIT_OF, checked
from camgraph.tools.commands.local_path import LocalPath
from camgraph.tools.commands.run_options import name_option, of_owner, owner_option
from camgraph.tools.display.console import console_of_output
from camgraph.tools.display.live_table import render
from camgraph.tools.display.running import run_plan
from camgraph.tools.display.screen import JSON_LOGS


@click.command()
@click.argument("graph", type=LocalPath())
@click.option("--name", help="The name of the run; by default the graph's.")
@click.option(JSON_LOGS, is_flag=True, help="Write logs as JSON lines, without a live table.")
@click.option("--quiet", is_flag=True, help="No live table and no summary; problems are still printed.")
@env_file_option("NAME=VALUE lines for `${NAME}` in GRAPH; the run remembers the file for later changes.")
def run(graph: Path, name: str | None, json_logs: bool, quiet: bool, env_files: tuple[Path, ...]) -> None:
    """Run GRAPH until its cameras end or you stop it (Ctrl-C: frames on the way still arrive).

    SIGHUP takes the changed graph file over, as `camgraph reload` does.
    """
    sys.exit(run_graph_file(graph, name, env_files, json_logs=json_logs, quiet=quiet))


def run_graph_file(
    graph: Path,
    name: str | None,
    env_files: Sequence[Path],
    *,
    json_logs: bool,
    quiet: bool,
    calm: bool = False,
    amend: Amend = unchanged,
) -> int:
    """Run a graph file to its end; returns the exit status. `amend`: changes the graph before its check.

    `calm`: successes are not logged.
    """
    from camgraph.tools.commands.watching.picture_size import with_picture_sizes  # noqa: PLC0415 - knows stages, whose imports take long
    from camgraph.tools.commands.way_in import ways_in  # noqa: PLC0415 - as above

    variables = Variables(env_files)
    environ, remarks = variables.anew()
    loaded = load_graph(graph, name=name, environ=environ, amend=amend)
    show_remarks([*remarks, *loaded.source.remarks])
    require_room(loaded)
    plan = with_picture_sizes(plan_of(loaded), lambda text: _show(text, quiet=quiet or json_logs))
    loader = GraphSource(variables, with_picture_sizes, amend=amend)
    return run_plan(plan, json_logs=json_logs, quiet=quiet, calm=calm, loader=loader, way_in=ways_in(plan))


def require_room(graph: Graph) -> None:
    """Raises EnvironmentProblem if this machine cannot run the graph."""
    if not graph.in_process:
        require_processes()
    need = memory_need(graph)
    if not need.fits:
        raise EnvironmentProblem(
            f"{graph.source.file}: /dev/shm is too small:\n" + "\n".join(in_words(need)), error_id="shared-memory"
        )


def _show(text: str, *, quiet: bool) -> None:
    if not quiet:
        click.echo(text, err=True)


@click.command()
@name_option
@owner_option
@click.option("--json", "as_json", is_flag=True, help="All that is known, as JSON.")
@click.option("--check", "as_check", is_flag=True, help="One line and an exit status for monitors; see below.")
def status(name: str | None, owner: int | None, as_json: bool, as_check: bool) -> None:
    """Show the state of a running graph.

    With --check: exit status 0 if the run is healthy, 1 if it is degraded, 2 if it is down, 3 if there is no such run;
    one line gives the reason. Healthy means: frames of every camera went through lately, and there is no trouble.
    """
    if as_check:
        verdict = checked(name, owner)
        click.echo(json.dumps(asdict(verdict)) if as_json else f"{verdict.level}: {verdict.reason}")
        sys.exit(EXIT_OF[verdict.level])
    run_name = find_run(name, owner=owner)
    answer = ask(run_name, "status", owner=owner)
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    shown = RunStatus.from_json(answer)
    if owner is not None:
        click.echo(f"{run_name}{of_owner(owner)}:")
    console_of_output().print(render(shown))


@click.command()
@name_option
@owner_option
def stop(name: str | None, owner: int | None) -> None:
    """Stop a running graph in order: its cameras end, and frames on the way still arrive."""
    run_name = find_run(name, owner=owner)
    ask(run_name, "stop", owner=owner)
    click.echo(f"{run_name}{of_owner(owner)} is stopping")
