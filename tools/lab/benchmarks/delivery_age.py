"""How old a frame is when its event is there, and when its picture and clip are: on live cameras, with and without
pictures: `python -m camgraph.tools.lab.benchmarks.delivery_age --report docs/benchmarks.md`.

    simulated cameras ─> capture ... rules ─> outbox ─> sink_webhook, sink_jsonl, sink_mqtt ─> receivers in this process

Somebody comes and goes before each camera. The camera tells the time of each frame, and the receivers when an event
came. A model that costs nothing sees the people, so that the ages are those of everything else. For MQTT, mosquitto and
`camgraph[mqtt]` must be installed; without them the others are measured.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import click

from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.tools.lab.blinking import PERIOD_S, write_clip
from camgraph.tools.lab.broker_servers import mosquitto, serving
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.graph_run import run_text
from camgraph.tools.lab.light_model import SIDE, write_model
from camgraph.tools.lab.report_page import percentile
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator

_BRIGHT = 110.0
_BEFORE_S, _AFTER_S = 0.2, 0.5
"""So short that the clips of two incidents do not meet: such share one clip."""
_BY_ITSELF = ("condition", "unseen")
_WARM_UP_S = 2.0
_AROUND_S = 15.0
"""About what a run takes beside the measured time."""
_LOOK_S = 0.001
_GRAPH = """
version: 1
name: {name}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [{side}, {side}]}}}}
  infer: {{use: infer, from: prepare, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.3}}]}}}}
"""


class Arrival(NamedTuple):
    """An event as it came to a receiver, UTC since 1970."""

    sink: str
    at_ns: int
    event: Mapping[str, Any]

    @property
    def data(self) -> Mapping[str, Any]:
        return dict(self.event["data"])

    @property
    def age_ms(self) -> float:
        """Since the time of its frame."""
        return self.at_ns / 1e6 - utc_ms(self.event["time"])


def utc_ms(text: str) -> float:
    """A time of an event, since 1970."""
    return datetime.fromisoformat(text).timestamp() * 1e3


@dataclass(frozen=True, slots=True)
class Ages:
    """Ages of one run, in ms. `events`: sink -> ages of the starts of incidents; `files`: kind -> ages of ready files.

    A picture is as old as the frame of its incident's start, a clip as the end of what it shows.
    """

    events: Mapping[str, Sequence[float]]
    files: Mapping[str, Sequence[float]]


def ages_of(arrivals: Sequence[Arrival], since_ms: float) -> Ages:
    """Only of incidents that began after `since_ms` and ended by themselves."""
    starts = [one for one in arrivals if one.event["type"] == "camgraph.incident.start"]
    starts = [one for one in starts if utc_ms(one.event["time"]) >= since_ms]
    begun = {one.data["incident"]: utc_ms(one.event["time"]) for one in starts}
    ends = [one for one in arrivals if one.event["type"] == "camgraph.incident.end"]
    until = {one.data["incident"]: utc_ms(one.data["end_time"]) for one in ends if one.data["reason"] in _BY_ITSELF}
    events: dict[str, list[float]] = {}
    for one in starts:
        events.setdefault(one.sink, []).append(one.age_ms)
    files: dict[str, list[float]] = {"snapshot": [], "clip": []}
    for one in arrivals:
        if one.sink == "sink_webhook" and one.event["type"] == "camgraph.footage.ready":
            kind, incident = one.data["kind"], one.data["incident"]
            if kind == "snapshot" and incident in begun:
                files[kind].append(one.at_ns / 1e6 - begun[incident])
            if kind == "clip" and incident in begun.keys() & until.keys():
                files[kind].append(one.at_ns / 1e6 - until[incident] - 1e3 * _AFTER_S)
    return Ages(events, files)


# ---- the receivers

Note = Callable[[str, bytes], None]


@contextmanager
def web_server(note: Note) -> Iterator[int]:
    """Answers each POST with 204. The port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            note("sink_webhook", self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def follower(note: Note, path: Path) -> Iterator[None]:
    """Reads the lines of a file as soon as they are there."""
    stop = threading.Event()

    def follow() -> None:
        while not path.exists():
            if stop.wait(_LOOK_S):
                return
        with path.open("rb") as file:
            rest = b""
            while not stop.wait(_LOOK_S):
                *lines, rest = (rest + file.read()).split(b"\n")
                for line in lines:
                    note("sink_jsonl", line)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def mqtt_broker(note: Note, folder: Path) -> Iterator[int]:
    """A broker, and somebody who has subscribed to all events there. Its port. Raises LookupError."""
    if find_spec("paho") is None:
        raise LookupError("paho is not installed")
    from paho.mqtt.client import Client, MQTTv5  # noqa: PLC0415 - an extra
    from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415

    with serving(mosquitto(folder)) as server:
        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        client.on_connect = lambda *_: client.subscribe("ages/+/seen", qos=1)
        client.on_message = lambda _, __, message: note("sink_mqtt", message.payload)
        client.connect("127.0.0.1", server.port)
        client.loop_start()
        try:
            yield server.port
        finally:
            client.disconnect()
            client.loop_stop()


# ---- a run


def measure(*, pictures: bool, cameras: int, seconds: float, size: tuple[int, int], fps: int) -> Ages:
    """Run the graph for so long, once all cameras are there."""
    arrivals = list[Arrival]()

    def note(sink: str, body: bytes) -> None:
        arrivals.append(Arrival(sink, time.time_ns(), json.loads(body)))

    with tempfile.TemporaryDirectory(prefix="cgages") as text, ExitStack() as stack:
        folder = Path(text)
        write_clip(folder / "blinking.mp4", size=size, fps=fps, gop=fps)
        write_model(folder / "light.onnx", bright=_BRIGHT)
        clip = ClipSettings(path=str(folder / "blinking.mp4"))
        settings = [CameraSettings(name=f"c{number}", clip=clip, seed=number) for number in range(cameras)]
        simulator = stack.enter_context(RtspSimulator(settings))
        sinks = _sinks(stack, note, folder)
        if pictures:
            sinks["footage"] = {"use": "sink_footage", "with": {"before_s": _BEFORE_S, "after_s": _AFTER_S}}
        watch = _Watch(seconds)
        run_text(_graph(simulator.cameras, sinks), watch, limit_s=seconds + 120, folder=folder)
    return ages_of(arrivals, watch.since_ms)


def _sinks(stack: ExitStack, note: Note, folder: Path) -> dict[str, dict[str, Any]]:
    url = f"http://127.0.0.1:{stack.enter_context(web_server(note))}/"
    stack.enter_context(follower(note, folder / "events.jsonl"))
    sinks: dict[str, dict[str, Any]] = {
        "hook": {"use": "sink_webhook", "with": {"url": url, "allow_private": True}},
        "log": {"use": "sink_jsonl", "with": {"path": "events.jsonl"}},
    }
    try:
        port = stack.enter_context(mqtt_broker(note, folder))
    except LookupError as missing:
        click.echo(f"without sink_mqtt: {missing}")
    else:
        sinks["mqtt"] = {"use": "sink_mqtt", "with": {"address": f"mqtt://127.0.0.1:{port}", "prefix": "ages"}}
    return sinks


def _graph(cameras: Sequence[CameraHandle], sinks: Mapping[str, Mapping[str, Any]]) -> str:
    listed = "\n".join(f'  {camera.name}: {{url: "{camera.url}"}}' for camera in cameras)
    lines = (f"  {name}: {json.dumps({**sink, 'from': 'actions'})}\n" for name, sink in sinks.items())
    return _GRAPH.format(name=f"ages{os.getpid()}", cameras=listed, side=SIDE) + "".join(lines)


class _Watch:
    """Called by the supervisor again and again: stops the run in time."""

    def __init__(self, seconds: float) -> None:
        self.since_ms = 0.0
        self._seconds = seconds
        self._until_s = 0.0

    def __call__(self, supervisor: Supervisor) -> None:
        if not self._until_s:
            if all(camera.frames for camera in supervisor.status().cameras.values()):
                self.since_ms = time.time() * 1e3 + 1e3 * _WARM_UP_S
                self._until_s = time.monotonic() + _WARM_UP_S + self._seconds
        elif time.monotonic() >= self._until_s:
            supervisor.stop()


# ---- the page


def table(without: Ages, with_pictures: Ages) -> list[str]:
    """Its lines."""
    places = {
        "sink_webhook": "the event at a web server (`sink_webhook`)",
        "sink_jsonl": "its line in a file, on the disk (`sink_jsonl`)",
        "sink_mqtt": "the message at a subscriber of mosquitto (`sink_mqtt`)",
    }
    rows = [
        f"| {words} | {_short(without.events.get(sink, ()))} | {_short(with_pictures.events.get(sink, ()))} |"
        for sink, words in places.items()
    ]
    files = with_pictures.files
    return [
        "| from the frame to | without `sink_footage`: p50, p95 | with it |",
        "|---|---|---|",
        *rows,
        f"| `ready` of its picture at the web server | | {_short(files['snapshot'])} |",
        f"| `ready` of its clip there, from the last frame of the clip | | {_short(files['clip'])} |",
    ]


def _short(ages_ms: Sequence[float]) -> str:
    if not ages_ms:
        return "-"
    return f"{percentile(ages_ms, 0.5):.0f} ms, {percentile(ages_ms, 0.95):.0f} ms ({len(ages_ms)})"


@figure_command("benchmarks.delivery_age")
@click.option("--cameras", default=2, show_default=True)
@click.option("--seconds", default=80.0, show_default=True, help="How long each of the two runs is measured.")
@click.option("--size", type=(int, int), default=(1280, 720), show_default=True, help="Of the pictures.")
@click.option("--fps", default=25, show_default=True)
def main(figure: Figure, cameras: int, seconds: float, size: tuple[int, int], fps: int) -> None:
    """Measure how old frames are when their events, pictures and clips are there."""
    figure.takes(2 * (seconds + _AROUND_S), "two runs")
    without, with_pictures = (
        measure(pictures=pictures, cameras=cameras, seconds=seconds, size=size, fps=fps) for pictures in (False, True)
    )
    parts = [figure.head(), figure.others(), "", *table(without, with_pictures), ""]
    parts += [
        f"{cameras} cameras of {size[0]}x{size[1]}, {fps} frames a second, a keyframe each second; somebody comes "
        f"every {PERIOD_S} s. In brackets: how many.",
    ]
    figure.publish("\n".join(parts))


if __name__ == "__main__":
    main()
