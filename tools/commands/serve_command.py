"""The command `serve`: runs a graph with the stage `serve`, whether it has one or not."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph.definition import GraphFile, StageEntry
from camgraph.tools.commands.env_file_option import env_file_option
from camgraph.tools.commands.local_path import LocalPath
from camgraph.tools.commands.run_command import run_graph_file
from camgraph.tools.display.screen import JSON_LOGS
from camgraph.tools.service.serve import PORT

_NAME = "page"


@click.command()
@click.argument("graph", type=LocalPath())
@click.option("--name", help="The name of the run; by default the graph's.")
@click.option(
    "--address",
    metavar="HOST:PORT",
    help=f"Where to listen, if GRAPH has no stage `serve`.  [default: 127.0.0.1:{PORT}]",
)
@click.option(JSON_LOGS, is_flag=True, help="Write logs as JSON lines, without a live table.")
@click.option("--quiet", is_flag=True, help="No live table and no summary; problems are still printed.")
@env_file_option("NAME=VALUE lines for `${NAME}` in GRAPH; the run remembers the file for later changes.")
def serve(
    graph: Path, name: str | None, address: str | None, *, json_logs: bool, quiet: bool, env_files: tuple[Path, ...]
) -> None:
    """Run GRAPH as `camgraph run` does, with a page to look at, an API and metrics.

    If GRAPH has no stage `serve`, one is added that listens on this machine alone. The address to open in a
    browser is shown when the run has begun.
    """
    amend = _Amend(address)
    calm = sys.stderr.isatty()  # the live table shows more than successes in a log do
    sys.exit(run_graph_file(graph, name, env_files, json_logs=json_logs, quiet=quiet, calm=calm, amend=amend))


class _Amend:
    """Adds the stage."""

    def __init__(self, address: str | None) -> None:
        self._address = address

    def __call__(self, parsed: GraphFile) -> GraphFile:
        """Raises UserError if the graph cannot have it."""
        if parsed.processes == "one":
            raise UserError(
                "a graph with `processes: one` cannot be served: it is one process, which nobody can ask",
                error_id="run-one-process",
            )
        own = next((name for name, entry in parsed.stages.items() if entry.use == "serve"), None)
        if own is not None:
            if self._address is not None:
                raise UserError(
                    f"the graph has the stage `{own}` already: change its `address`, and leave --address out",
                    error_id="option-value",
                )
            return parsed
        address = self._address or f"127.0.0.1:{PORT}"
        name = next(name for name in (_NAME, "page_of_camgraph") if name not in parsed.stages)
        values = {"use": "serve", "from": "events", "with": {"address": address}}
        return parsed.model_copy(update={"stages": {**parsed.stages, name: StageEntry.model_validate(values)}})
