"""`camgraph sinks test`: sends a test event through the sinks of a graph, so that you know before the first fall."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pipeline.errors import CamgraphError, EnvironmentProblem, Unavailable, UserError
from pipeline.foreign_text import shown
from pipeline.graph import load_plan
from pipeline.messages import Event
from pipeline.plan import RunPlan, StagePlan
from pipeline.registry import find_stage
from pipeline.single_stage import HandContext
from pipeline.system.redaction import redact_urls
from pipeline.system.spelling import did_you_mean
from stages.delivery.event_sink import EventSink
from stages.delivery.trial_event import trial_event

_PAUSE_S = 2.0
_TRIES = 3
"""So often at most: a server may lock out who fails more often."""
_TURN_S = 0.05


@click.group("sinks")
def sinks() -> None:
    """Try the sinks of a graph."""


@sinks.command("test")
@click.argument("graph", type=click.Path(path_type=Path))
@click.argument("names", metavar="[SINK]...", nargs=-1)
@click.option(
    "--within",
    metavar="SECONDS",
    type=click.FloatRange(1, 300),
    default=20.0,
    show_default=True,
    help="How long to try each of them.",
)
@click.pass_context
def test_sinks(ctx: click.Context, graph: Path, names: Sequence[str], within: float) -> None:
    """Send a test event through each sink of GRAPH that tells others, or only through those named.

    No camera is opened, and filters are passed over. The event says that it is a test: its action is `test`, and
    `data.test` is true. Exit status: 0 if it arrived everywhere, 1 if not.
    """
    plan = load_plan(graph)
    found = _event_sinks(plan)
    unknown = [name for name in names if name not in found]
    if unknown:
        raise UserError(f"{graph}: there is no sink of events {shown(unknown[0])}{did_you_mean(unknown[0], found)}")
    wanted = {name: stage for name, stage in found.items() if not names or name in names}
    if not wanted:
        raise UserError(f"{graph}: no sink of it takes events")
    width = max(len(shown(name)) for name in wanted)
    failed = False
    for name, stage in wanted.items():
        told, good = _tried(plan, stage, within)
        click.echo(f"{shown(name):<{width}}  {stage.use}  {told}")
        failed |= not good
    ctx.exit(failed)


def _event_sinks(plan: RunPlan) -> dict[str, StagePlan]:
    """The stages that take events, without camgraph's own."""
    stages = [stage for process in plan.processes for stage in process.stages]
    kinds = {stage.name: find_stage(stage.use) for stage in stages}
    return {
        stage.name: stage
        for stage in stages
        if getattr(kinds[stage.name], "inputs", None) is Event and not getattr(kinds[stage.name], "added_by_itself", 0)
    }


def _tried(plan: RunPlan, stage: StagePlan, within_s: float) -> tuple[str, bool]:
    """The result for people, and whether there is nothing to mend."""
    kind = find_stage(stage.use)
    if not issubclass(kind, EventSink):
        return "not tried: it sends nothing to others", True
    camera = next(iter(plan.camera_settings), "test")
    event = trial_event(plan.graph, camera, time.time_ns())
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="camgraph-trial-") as folder:
        context = HandContext(
            Path(plan.base_folder), Path(folder), stage=stage.name, graph=plan.graph, cameras=(camera,)
        )
        sink = kind(kind.settings_type.model_validate(dict(stage.settings)), context)
        try:
            sink.open()
            _send(sink, event, time.monotonic() + within_s)
        except (CamgraphError, OSError) as error:
            return f"did NOT arrive: {redact_urls(str(error))}", False
        finally:
            sink.close()
    return f"arrived, {time.monotonic() - began_s:.1f} s", True


def _send(sink: EventSink[Any], event: Event, until_s: float) -> None:
    """Raises the last error if the other side does not take it."""
    failures = 0
    while True:
        try:
            sink.try_out(event)
        except (Unavailable, EnvironmentProblem, OSError) as error:
            patient = isinstance(error, Unavailable) and error.patient
            failures += not patient
            pause_s = _TURN_S if patient else _PAUSE_S
            if failures >= _TRIES or time.monotonic() + pause_s > until_s:
                raise
            time.sleep(pause_s)
        else:
            return
