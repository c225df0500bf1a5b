"""Kills processes while events and clips flow.

    python -m camgraph.tools.lab.proofs.footage_kills --report docs/footage_kills.md

Each round kills one or more processes with SIGKILL, in the middle of an incident: captures, the stage that keeps
pictures and clips, the outbox's process, the other sink, the supervisor. Afterwards

    events   every one that was committed is in the sink's file
    clips    each incident has a picture and a clip, or an event that says why not; each clip that is there plays
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import click
import cv2

from camgraph.pipeline.testing import hit
from camgraph.stages.sinks.footage.incident_record import KINDS, IncidentRecord, records_in, sha256_of
from camgraph.tools.lab.blinking import PERIOD_S, write_clip
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.light_model import SIDE, write_model
from camgraph.tools.lab.proofs.trials.delivery import Delivered, Ledger
from camgraph.tools.lab.proofs.trials.run import LiveRun, is_whole
from camgraph.tools.lab.proofs.trials.subject import EVENTS, Subject
from camgraph.tools.measuring.processes import SUPERVISOR, left_over
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator

GROUPS: Sequence[tuple[str, ...]] = (
    ("capture.c0",),
    ("footage.0",),
    ("outbox.0",),
    ("log.0",),
    ("capture.c0", "footage.0"),
    ("footage.0", "outbox.0"),
    ("capture.c0", "capture.c1", "footage.0", "outbox.0", "log.0"),
    (SUPERVISOR,),
)
_BRIGHT = 110.0
_WAIT_S = 60.0
_LOOK_S = 0.05
_GRAPH = """
version: 1
name: {name}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [{side}, {side}]}}}}
  infer: {{use: infer, from: prepare, batch: {{max: 8}}, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.3, hold: 0.2s, update: 500ms}}]}}}}
  log: {{use: sink_jsonl, from: events, batch: {{max: 32}}, with: {{path: {events}}}}}
  footage: {{use: sink_footage, from: actions, with: {{before_s: 1, after_s: 1, crops: true}}}}
"""


@dataclass(slots=True)
class Findings:
    """`kills`: group -> rounds. `files`: kind and state -> how many. `whys`: why files are missing or cut."""

    kills: Counter[str] = field(default_factory=Counter)
    back_s: list[float] = field(default_factory=list)
    delivered: Delivered = field(default_factory=Delivered)
    incidents: int = 0
    files: Counter[str] = field(default_factory=Counter)
    whys: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def prove(rounds: int, *, cameras: int = 2, groups: Sequence[tuple[str, ...]] = GROUPS) -> Findings:
    """Kill each group so many times, let the run end, and check all files that it has made."""
    found = Findings()
    with tempfile.TemporaryDirectory(prefix="cgclips") as text:
        folder = Path(text)
        write_clip(folder / "blinking.mp4")
        clip = ClipSettings(path=str(folder / "blinking.mp4"))
        with RtspSimulator([CameraSettings(name=f"c{n}", clip=clip, seed=n) for n in range(cameras)]) as simulator:
            subject = _write_subject(folder, simulator.cameras)
            with LiveRun(subject) as run:
                _harm(run, found, rounds, groups)
        found.faults += [f"left over: {what}" for what in left_over(subject.name)]
        judge(subject, found)
    return found


def _write_subject(folder: Path, cameras: Sequence[CameraHandle]) -> Subject:
    write_model(folder / "light.onnx", bright=_BRIGHT)
    name = f"clips{os.getpid()}"
    listed = "\n".join(f'  {camera.name}: {{url: "{camera.url}"}}' for camera in cameras)
    graph = folder / "graph.yaml"
    graph.write_text(_GRAPH.format(name=name, cameras=listed, side=SIDE, events=EVENTS))
    return Subject(name, graph)


def _harm(run: LiveRun, found: Findings, rounds: int, groups: Sequence[tuple[str, ...]]) -> None:
    ledger = Ledger(run.outbox)
    run.until_live(_WAIT_S)
    for number in range(rounds):
        for group in groups:
            _await_clip(run.subject.folder)
            # At another moment of an incident each time.
            _wait(ledger, PERIOD_S * ((number * 0.37 + 0.11 * len(found.back_s)) % 1.0))
            found.back_s.append(_kill(run, ledger, group))
            found.kills[", ".join(group)] += 1
            click.echo(f"killed {', '.join(group)}: back after {found.back_s[-1]:.1f} s")
    _await_clip(run.subject.folder)
    _wait(ledger, PERIOD_S)
    run.stop(2 * _WAIT_S)
    ledger.read()
    found.delivered = ledger.against(run.subject.events)
    if not found.delivered.good:
        found.faults.append(f"events: {found.delivered}")
    if "Traceback" in run.log.read_text(errors="replace"):
        found.faults.append("a traceback in the log")


def _wait(ledger: Ledger, seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        ledger.read()
        time.sleep(_LOOK_S)


def _await_clip(folder: Path) -> None:
    """Wait until a clip grows."""
    end_s = time.monotonic() + _WAIT_S
    while not next(folder.glob("footage/*/*/*.mp4.part"), None):
        if time.monotonic() > end_s:
            raise TimeoutError(f"no clip within {_WAIT_S:g} s")
        time.sleep(_LOOK_S)


def _kill(run: LiveRun, ledger: Ledger, group: tuple[str, ...]) -> float:
    """Returns the time until all processes run again and all cameras are live."""
    before = run.processes()
    ledger.read()
    begun = time.monotonic()
    if group == (SUPERVISOR,):
        if not run.kill():
            raise RuntimeError("the supervisor had ended before it was killed")
        while left_over(run.subject.name) and time.monotonic() < begun + _WAIT_S:
            time.sleep(_LOOK_S)
        run.start()
        run.until_live(_WAIT_S)
        return time.monotonic() - begun
    for process in group:
        hit(before[process]["pid"], signal.SIGKILL)

    def is_back(status: Mapping[str, Any]) -> bool:
        now = status["processes"]
        return is_whole(status) and all(now[one]["pid"] not in (0, before[one]["pid"]) for one in group)

    run.until(is_back, _WAIT_S, f"{', '.join(group)} back")
    return time.monotonic() - begun


# ---- what was made


def judge(subject: Subject, found: Findings) -> None:
    """Hold the folder of footage against the events that the sink has."""
    events = {event["id"]: event for event in map(json.loads, subject.events.read_bytes().splitlines())}.values()
    begun = {event["data"]["incident"] for event in events if event["type"] == "camgraph.incident.start"}
    footage = [event for event in events if event["type"].startswith("camgraph.footage.")]
    announced = {(event["data"]["incident"], event["data"]["kind"]): event["data"] for event in footage}
    records = {record.incident: record for record in records_in(subject.folder / "footage")}
    found.incidents = len(begun)
    for incident in begun:
        if incident not in records:
            found.faults.append(f"incident {incident[:8]} has no record")
        for kind in KINDS:
            if (incident, kind) not in announced:
                found.faults.append(f"incident {incident[:8]}: nobody was told of its {kind}")
    for record in records.values():
        found.faults += [f"{record.path.name}: {fault}" for fault in faults_of(record, announced, found)]
    left = [path.name for path in (subject.folder / "footage").rglob("*.part")]
    found.faults += [f"unfinished: {name}" for name in left]


def faults_of(
    record: IncidentRecord, announced: Mapping[tuple[str, str], Mapping[str, Any]], found: Findings
) -> Iterator[str]:
    """All that is wrong with the files of one incident."""
    for kind in KINDS:
        state = record.files[kind]
        found.files[f"{kind} {state.state}"] += 1
        if state.why:
            found.whys[f"{kind}: {state.why}"] += 1
        if state.state == "pending":
            yield f"its {kind} was never finished"
        if state.state != "ready":
            continue
        hashes = {announced.get((record.incident, name), {}).get("sha256") for name in (kind, "best")}
        if sha256_of(record.file(kind)) not in hashes:
            yield f"the hash of its {kind} was not announced"
    if record.files["snapshot"].state == "ready" and cv2.imread(str(record.file("snapshot"))) is None:
        yield "its picture cannot be read"
    if record.files["clip"].state == "ready":
        yield from why_not_playing(record.file("clip"))


def why_not_playing(path: Path) -> Iterator[str]:
    """Everything in the clip that would disturb a player."""
    try:
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            packets = [packet for packet in container.demux(stream) if packet.size]
        with av.open(str(path)) as container:
            pictures = sum(1 for _ in container.decode(video=0))
    except (av.FFmpegError, OSError, IndexError) as error:
        yield f"its clip does not play: {error}"
        return
    if not packets or not packets[0].is_keyframe:
        yield "its clip does not begin at a keyframe"
    stamps = [packet.dts for packet in packets if packet.dts is not None]
    if any(after <= before for before, after in pairwise(stamps)):
        yield "its clip goes back in time"
    if pictures != len(packets):
        yield f"its clip has {len(packets)} packets and {pictures} pictures"


# ---- the page


def report(found: Findings) -> str:
    """The part of the page below the command."""
    files = ", ".join(f"{count} x {what}" for what, count in sorted(found.files.items()))
    return "\n".join(
        [
            "**Not all is proven:**" if found.faults else "**All of this is proven.**",
            "",
            *(f"- {fault}" for fault in found.faults),
            *([""] if found.faults else []),
            "| killed with SIGKILL, while a clip grew | rounds |",
            "|---|---|",
            *(f"| {group} | {count} |" for group, count in found.kills.items()),
            "",
            f"All processes ran and all cameras were live again after {max(found.back_s, default=0.0):.1f} s at most.",
            f"Events: {found.delivered}.",
            f"{found.incidents} incidents: {files}.",
            "",
            *([f"- {count} x {why}" for why, count in sorted(found.whys.items())] or ["No file is missing or cut."]),
            "",
        ]
    )


@figure_command("proofs.footage_kills")
@click.option("--rounds", default=5, show_default=True, help="How often each group of processes is killed.")
@click.option("--cameras", default=2, show_default=True)
def main(figure: Figure, rounds: int, cameras: int) -> None:
    """Kill processes while clips grow. Status 1 if not all is proven."""
    figure.takes(rounds * len(GROUPS) * 9.0, f"{rounds * len(GROUPS)} kills")
    found = prove(rounds, cameras=cameras)
    figure.publish("\n".join([figure.head(), "", report(found)]), found.faults)


if __name__ == "__main__":
    main()
