"""The command `camgraph`. Each command lives in a module of its own, which is imported only when it is called.

Exit status: 0 done, 1 something was given up, 2 the user's mistake, 3 the environment, 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from camgraph.pipeline.errors import EXIT_SIGINT, CamgraphError, GraphError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.system.process_one import leave_orphans_to_parent
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.pipeline.system.scarcity import require_address_space
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.tools.display.screen import JSON_LOGS, guarded, show_problem, way_to_explanations, writes_json

_LOGGED = ("run", "serve")
"""Commands whose standard error is the log of a service."""
_USAGE = "option-value"
"""The id of mistakes in a command line that click finds."""


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command's module, within `tools`, and its line in the list of commands."""

    module: str
    attribute: str
    help: str
    runs_graphs: bool = False


COMMANDS: Mapping[str, LazyCommand] = {
    "demo": LazyCommand(".commands.demo", "demo", "Watch four recorded cameras for 20 s each: a first look.", True),
    "init": LazyCommand(
        ".commands.init.command", "init", "Make a graph for your cameras, by questions in plain words."
    ),
    "run": LazyCommand(".commands.run_command", "run", "Run a graph until its cameras end or you stop it.", True),
    "serve": LazyCommand(
        ".commands.serve_command", "serve", "Run a graph with a page to look at, an API and metrics.", True
    ),
    "watch": LazyCommand(".commands.watch", "watch", "Watch videos, cameras or pictures without a graph file.", True),
    "check": LazyCommand(".commands.graph_commands", "check", "Report every mistake in a graph, and its memory."),
    "plan": LazyCommand(
        ".commands.plan_command",
        "plan",
        "Say how many cameras this machine holds with a graph, and what ends first.",
        True,
    ),
    "graph": LazyCommand(".commands.graph_commands", "graph", "Draw a graph: processes, queues and policies."),
    "schema": LazyCommand(".commands.graph_commands", "schema", "Print the JSON Schema of graph files."),
    "stages": LazyCommand(
        ".commands.stage_commands", "stages", "List the stages, the settings of one, or write a new one."
    ),
    "actions": LazyCommand(".commands.action_commands", "actions", "List the actions that rules may use, or show one."),
    "status": LazyCommand(".commands.run_command", "status", "Show how a running graph is doing."),
    "top": LazyCommand(".commands.top_command", "top_command", "Watch a running graph live, sorted and filtered."),
    "stop": LazyCommand(".commands.run_command", "stop", "Stop a running graph in order."),
    "cameras": LazyCommand(
        ".commands.camera_commands", "cameras", "List, add, remove or pause cameras of a running graph."
    ),
    "reload": LazyCommand(".commands.camera_commands", "reload", "Apply a changed graph file to its running graph."),
    "switch": LazyCommand(".commands.switch_command", "switch_command", "Turn a switch of a running graph on or off."),
    "incidents": LazyCommand(
        ".commands.incident_command", "incidents_command", "List the incidents that are kept, with picture and clip."
    ),
    "sinks": LazyCommand(".commands.sink_trials", "sinks", "Send a test event through the sinks of a graph."),
    "picture": LazyCommand(
        ".commands.picture_command", "picture_command", "Save the newest picture of a camera of a running graph."
    ),
    "counter": LazyCommand(
        ".commands.counter_command", "counter_command", "Show the counters of a running graph, or set one to zero."
    ),
    "outbox": LazyCommand(
        ".commands.outbox_command", "outbox_command", "Show events that wait or were given up; requeue or drop them."
    ),
    "service": LazyCommand(
        ".commands.service_command", "service", "Make a graph a service of systemd, or remove that."
    ),
    "model": LazyCommand(".models.command", "model", "Inspect, measure, compare and convert models."),
    "farm": LazyCommand(
        ".scenes.simulator.command", "simulator", "Simulate RTSP cameras from clips, with faults at will."
    ),
    "doctor": LazyCommand(".commands.doctor.command", "doctor", "Check this machine, and name remedies."),
    "assets": LazyCommand(".commands.asset_commands", "assets", "Pull the default model and clip, and list them."),
    "explain": LazyCommand(".commands.explaining.command", "explain", "Say why an error comes about, and what to do."),
    "help": LazyCommand(".commands.help_command", "help_command", "Show a page of the documentation."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called; the list of them costs no import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        if place.runs_graphs:
            require_address_space()
        command: click.Command = getattr(importlib.import_module(place.module, "camgraph.tools"), place.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; its own guess looks only at commands that are imported already."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"no command is called {shown(name)}{did_you_mean(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.help) for name, place in COMMANDS.items()])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the program that the user has started."""
        gc.set_threshold(20_000)  # from 700: half of the objects here are modules and classes, which are no garbage
        with guarded(as_json=JSON_LOGS in sys.argv[1:]):
            return super().__call__(*args, **kwargs)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Options before the name of a command are read here, those behind it by `invoke`."""
        try:
            return super().make_context(*args, **kwargs)
        except click.ClickException as error:
            _show_usage(error)
            raise click.exceptions.Exit(error.exit_code) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            _take_ctrl_c()
            return super().invoke(ctx)
        except CamgraphError as error:
            # `explain` is no help with a mistake in its own id.
            kind, kinds = ("", ()) if ctx.invoked_subcommand == "explain" else (error.error_id, error.error_ids)
            is_log = ctx.invoked_subcommand in _LOGGED
            show_problem(redact_urls(_shown(error)), error.exit_status, kind, kinds, is_log=is_log)
            ctx.exit(error.exit_status)
        except click.ClickException as error:
            _show_usage(error)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(EXIT_SIGINT)


def _take_ctrl_c() -> None:
    """From here on Ctrl-C is an exception, which commands catch. Before, it ended the process (`camgraph.__main__`)."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _show_usage(error: click.ClickException) -> None:
    """What click says of a command line, with the id of such mistakes. Without any words it shows the help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    elif writes_json():
        show_problem(error.format_message(), error.exit_code, _USAGE)
    else:
        error.show()
        if sys.stderr.isatty():
            sys.stderr.write(f"{way_to_explanations([_USAGE])}\n")


def _shown(error: CamgraphError) -> str:
    """Its text: for people, with the lines of the file."""
    return error.with_excerpts if isinstance(error, GraphError) and not writes_json() else str(error)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="camgraph", message="%(prog)s %(version)s")
def main() -> None:
    """Watch many cameras on one machine, and turn what people do in front of them into events."""
    leave_orphans_to_parent()
    atexit.register(gc.freeze)  # see camgraph.pipeline.worker.child: nothing is gained by a last look for cycles
    atexit.register(_let_go_of_errors)


def _let_go_of_errors() -> None:
    """Without a reader of the standard error, Python's own last flush would make 120 the exit status."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


if __name__ == "__main__":
    main()
