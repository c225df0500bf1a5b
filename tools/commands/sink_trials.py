"""`camgraph sinks test`: sends a test event through the sinks of a graph, so that you know before the first fall."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import cv2
import numpy as np

from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem, Unavailable, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.messages import Event
from camgraph.pipeline.plan import RunPlan, StagePlan
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.single_stage import HandContext
from camgraph.pipeline.stage import Stage
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.rules.rule_set import examined_rules
from camgraph.stages.sinks.delivery.event_sink import EventSink
from camgraph.stages.sinks.delivery.event_view import view_of
from camgraph.stages.sinks.delivery.trial_event import trial_event
from camgraph.tools.commands.env_file_option import env_file_option, show_remarks
from camgraph.tools.commands.local_path import LocalPath

WITHIN_S = 20.0
"""How long to try each sink."""
_PAUSE_S = 2.0
_TRIES = 3
"""So often at most: a server may lock out who fails more often."""
_TURN_S = 0.05
_MOST_NAMED = 10
"""Of the incidents that filters leave out."""


@click.group("sinks")
def sinks() -> None:
    """Try the sinks of a graph."""


@sinks.command("test")
@click.argument("graph", type=LocalPath())
@click.argument("names", metavar="[SINK]...", nargs=-1)
@click.option(
    "--within",
    metavar="SECONDS",
    type=click.FloatRange(1, 300),
    default=WITHIN_S,
    show_default=True,
    help="How long to try each of them.",
)
@env_file_option("NAME=VALUE lines for `${NAME}` in GRAPH.")
@click.pass_context
def test_sinks(
    ctx: click.Context, graph: Path, names: Sequence[str], within: float, env_files: tuple[Path, ...]
) -> None:
    """Send a test event through each sink of GRAPH that tells others, or only through those named.

    No camera is opened, and filters are passed over: a line below says what they leave out now. The event says that it
    is a test: its action is `test`, and `data.test` is true. If GRAPH keeps pictures, it has a drawing as its picture.
    Exit status: 0 if it arrived everywhere, 1 if not.
    """
    environ, remarks = Variables(env_files).anew()
    show_remarks(remarks)
    plan = load_plan(graph, environ=environ)
    found = _event_sinks(plan)
    unknown = [name for name in names if name not in found]
    if unknown:
        raise UserError(
            f"{graph}: there is no sink of events {shown(unknown[0])}{did_you_mean(unknown[0], found)}",
            error_id="name-unknown",
        )
    if not found:
        raise UserError(f"{graph}: no sink of it takes events", error_id="option-value")
    ctx.exit(not try_sinks(plan, names, within))


def try_sinks(plan: RunPlan, names: Sequence[str] = (), within_s: float = WITHIN_S) -> bool:
    """Send a test event through each sink, or those named, and print how it went; whether it arrived everywhere."""
    found = _event_sinks(plan)
    wanted = {name: stage for name, stage in found.items() if not names or name in names}
    width = max(len(shown(name)) for name in wanted)
    failed = False
    with _sample_picture(plan) as picture:
        for name, stage in wanted.items():
            lines, good = _tried(plan, stage, within_s, picture)
            click.echo(f"{shown(name):<{width}}  {stage.use}  {lines[0]}")
            for line in lines[1:]:
                click.echo(f"{'':<{width}}  {line}")
            failed |= not good
    return not failed


@contextmanager
def _sample_picture(plan: RunPlan) -> Iterator[str | None]:
    """The name of a drawing in the folder of the graph, while the block runs; None if the graph keeps no pictures."""
    if not any("footage" in _facts(stage) for stage in _stages(plan)):
        yield None
        return
    try:
        file = tempfile.NamedTemporaryFile(dir=plan.base_folder, prefix=".camgraph-test-", suffix=".jpg")  # noqa: SIM115
    except OSError as error:
        click.echo(f"no picture is tried: {plan.base_folder} cannot be written: {error.strerror}")
        yield None
        return
    with file:
        file.write(_drawing())
        file.flush()
        yield Path(file.name).name


def _drawing() -> bytes:
    """A JPEG that nobody takes for a picture of a camera."""
    picture = np.full((360, 640, 3), 60, np.uint8)
    cv2.rectangle(picture, (20, 20), (619, 339), (200, 200, 200), 2)
    for text, y in (("This is a test", 160), ("The picture of the camera will be here", 220)):
        cv2.putText(picture, text, (50, y), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (255, 255, 255), 2, cv2.LINE_AA)
    return bytes(cv2.imencode(".jpg", picture)[1])


def _stages(plan: RunPlan) -> list[StagePlan]:
    return [stage for process in plan.processes for stage in process.stages]


def _facts(stage: StagePlan) -> Mapping[str, Any]:
    kind = find_stage(stage.use)
    return kind.describe(kind.settings_type.model_validate(dict(stage.settings))) if issubclass(kind, Stage) else {}


def _event_sinks(plan: RunPlan) -> dict[str, StagePlan]:
    """The stages that take events, without camgraph's own."""
    stages = _stages(plan)
    kinds = {stage.name: find_stage(stage.use) for stage in stages}
    return {
        stage.name: stage
        for stage in stages
        if getattr(kinds[stage.name], "inputs", None) is Event and not getattr(kinds[stage.name], "added_by_itself", 0)
    }


def _tried(plan: RunPlan, stage: StagePlan, within_s: float, picture: str | None) -> tuple[list[str], bool]:
    """The result for people, in lines, and whether there is nothing to mend."""
    kind = find_stage(stage.use)
    if not issubclass(kind, EventSink):
        return ["not tried: it sends nothing to others"], True
    camera = next(iter(plan.camera_settings), "test")
    event = trial_event(plan.graph, camera, time.time_ns(), snapshot=picture)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="camgraph-trial-") as folder:
        # Of no camera it may say how things stand: a run may show that at the same place.
        context = HandContext(Path(plan.base_folder), Path(folder), stage.name, plan.graph, cameras=())
        sink = kind(kind.settings_type.model_validate(dict(stage.settings)), context)
        try:
            sink.open()
            _send(sink, event, time.monotonic() + within_s)
        except (CamgraphError, OSError) as error:
            return [f"did NOT arrive: {redact_urls(str(error))}"], False
        finally:
            sink.close()
        return [f"arrived, {time.monotonic() - began_s:.1f} s", *_left_out(plan, sink)], True


def _left_out(plan: RunPlan, sink: EventSink[Any]) -> Iterator[str]:
    """The incidents of the graph's rules that the filters of this sink would leave out at this moment."""
    incidents = [
        trial_event(plan.graph, camera, time.time_ns(), rule=rule, action=action, severity=severity)
        for rule, action, severity in _rules(plan)
        for camera in plan.camera_settings
    ]
    views = [view_of(event) for event in incidents if not sink.would_send(event)]
    if views and len(views) == len(incidents):
        yield "its filters leave out all incidents at this time"
    elif views:
        names = dict.fromkeys(f"{view.rule} on {view.camera}" for view in views)
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        yield f"its filters leave out, at this time: {', '.join(map(shown, list(names)[:_MOST_NAMED]))}{more}"


def _rules(plan: RunPlan) -> Iterator[tuple[str, str, str]]:
    """(id, action, severity) of each rule of the graph."""
    for facts in map(_facts, _stages(plan)):
        rules = examined_rules(facts["rules"]["text"], "rules")[0] if "rules" in facts else None
        for rule_id, ready in rules.rules.items() if rules else ():
            yield rule_id, ready.action, ready.definition.severity


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
