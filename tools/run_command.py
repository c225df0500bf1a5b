"""`camgraph run`, `status` and `stop`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pipeline.control import ask, find_run
from pipeline.errors import EnvironmentProblem
from pipeline.graph import load_graph, plan_of
from pipeline.graph.memory import in_words, memory_need
from pipeline.scarcity import require_processes
from tools.live_table import console_of_output, render
from tools.run_status import Status
from tools.running import run_plan


@click.command()
@click.argument("graph", type=click.Path(path_type=Path))
@click.option("--name", help="Call the run so, instead of what the graph calls itself.")
@click.option("--json-logs", is_flag=True, help="Write logs as JSON lines, without a live table.")
@click.option("--quiet", is_flag=True, help="No live table and no summary; problems are still said.")
def run(graph: Path, name: str | None, json_logs: bool, quiet: bool) -> None:
    """Run GRAPH until its cameras end or it is stopped (Ctrl-C: what is on the way still arrives)."""
    loaded = load_graph(graph, name=name)
    if not loaded.in_process:
        require_processes()
    need = memory_need(loaded)
    if not need.fits:
        raise EnvironmentProblem(f"{graph}: /dev/shm is too small:\n" + "\n".join(in_words(need)))
    sys.exit(run_plan(plan_of(loaded), json_logs=json_logs, quiet=quiet))


@click.command()
@click.option("--name", help="Which run, where there are several.")
@click.option("--json", "as_json", is_flag=True, help="All that is known, as JSON.")
def status(name: str | None, as_json: bool) -> None:
    """Show what a running graph is doing."""
    answer = ask(find_run(name), "status")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    else:
        console_of_output().print(render(Status.from_json(answer)))


@click.command()
@click.option("--name", help="Which run, where there are several.")
def stop(name: str | None) -> None:
    """Stop a running graph in order: its cameras end, and what is on the way still arrives."""
    run_name = find_run(name)
    ask(run_name, "stop")
    click.echo(f"{run_name} is stopping")
