"""The files that `camgraph stages new` writes, with `$name` and the like for the stage's own name.

write_a_stage.md, write_a_sink.md and write_a_source.md in docs/ begin with the same files, and a test checks that.
"""

from __future__ import annotations

from collections.abc import Mapping

_PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$folder"
version = "0.1.0"
description = "The stage `$name` for camgraph"
requires-python = ">=3.11"
dependencies = ["camgraph"]

[project.optional-dependencies]
dev = ["mypy", "pytest", "ruff"]

[project.entry-points."camgraph.stages"]
$name = "$package.$name:$Name"

[tool.setuptools]
packages = ["$package"]

[tool.pytest.ini_options]
pythonpath = ["."]

[tool.ruff]
line-length = 120

[tool.mypy]
strict = true
packages = ["$package"]
"""

_IGNORED = """\
__pycache__/
*.egg-info/
"""

_STAGE = '''\
"""Tells when pictures are dark."""

import json
from collections.abc import Iterable, Sequence

from camgraph.pipeline.messages import Event, Stamp
from camgraph.pipeline.stage import Settings, Stage
from camgraph.stages.messages import Frame
from pydantic import Field


class ${Name}Settings(Settings):
    below: float = Field(40, ge=0, le=255, description="The mean brightness under which a picture is dark")


class $Name(Stage[${Name}Settings]):
    """Frame -> Event, one for each dark picture."""

    settings_type = ${Name}Settings
    inputs = Frame
    outputs = (Event,)

    def process(self, items: Sequence[Frame]) -> Iterable[Event]:
        for frame in items:
            brightness = float(frame.bgr().mean())
            if brightness < self.settings.below:
                yield self._event(frame.stamp, brightness)

    def _event(self, at: Stamp, brightness: float) -> Event:
        name = f"{self.context.stage}.{at.camera}.{at.epoch}.{at.seq}"
        body = {"id": name, "camera": at.camera, "time_s": at.time_ns / 1e9, "brightness": round(brightness, 1)}
        return Event(at, name, name, "single", json.dumps(body).encode())
'''

_STAGE_TEST = """\
from pathlib import Path

import numpy as np
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Frame

from $package.$name import $Name


def frame(seq: int, brightness: int) -> Frame:
    return Frame.of_bgr(stamp(seq), np.full((48, 64, 3), brightness, np.uint8))


def test_each_dark_picture_makes_an_event(tmp_path: Path) -> None:
    frames = [frame(0, 200), frame(1, 20), frame(2, 200), frame(3, 10)]
    with opened($Name, {"below": 40}, folder=tmp_path) as stage:
        events = feed(stage, frames, batch=2, end=True)
    assert [event.stamp.seq for event in events] == [1, 3]
"""

_STAGE_GRAPH = """\
version: 1
name: $name
cameras:
  front: {url: "asset:vtest.avi", duration_s: 5}   # `camgraph assets pull` brings it; or write the path of a video
stages:
  capture: {use: capture}
  look:    {use: $name, from: capture, with: {below: 150}}
  log:     {use: sink_jsonl, from: look, with: {path: events.jsonl, mode: replace}}
"""

_SINK = '''\
"""Keeps events in a table of an SQLite file, each of them once."""

import sqlite3
from collections.abc import Sequence

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink
from camgraph.stages.sinks.delivery.event_view import EventView
from pydantic import Field

TABLE = "CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, camera TEXT, rule TEXT, body TEXT)"


class ${Name}Settings(DeliverySettings):
    path: str = Field(min_length=1, description="The SQLite file, relative to the graph file")


class $Name(EventSink[${Name}Settings]):
    """Event -> a row of the table `events`."""

    settings_type = ${Name}Settings

    _file: sqlite3.Connection | None = None

    def connect(self) -> None:
        path = self.context.base_folder / self.settings.path
        try:
            self._file = sqlite3.connect(path, timeout=1, check_same_thread=False)
            self._file.execute(TABLE)
        except sqlite3.Error as error:
            raise Unavailable(f"{path}: {error}") from error

    def send(self, events: Sequence[EventView]) -> None:
        assert self._file
        rows = [(view.event.own_id, view.camera, view.rule, view.event.body.decode()) for view in events]
        try:
            with self._file:  # one transaction: all of them are kept, or none
                self._file.executemany("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?)", rows)
        except sqlite3.Error as error:  # locked, or the disk is full: the same events come again
            raise Unavailable(f"{self.settings.path}: {error}") from error

    def disconnect(self) -> None:
        if self._file:
            self._file.close()
            self._file = None
'''

_SINK_TEST = '''\
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from camgraph.pipeline.testing import SinkCase, SinkContract

from $package.$name import $Name


class Table:
    """The other side of the sink: the file, which another program may lock."""

    def __init__(self, folder: Path) -> None:
        self.settings = {"path": "events.db"}
        self.path = folder / "events.db"

    def arrived(self) -> list[str]:
        """The ids of all events that are there, in their order."""
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(self.path)) as file:
            return [name for (name,) in file.execute("SELECT id FROM events ORDER BY rowid")]
        return []

    def stop(self) -> None:
        """Be away for the sink."""
        self.other = sqlite3.connect(self.path)
        self.other.execute("BEGIN EXCLUSIVE")

    def start(self) -> None:
        """Be there again."""
        self.other.close()


@contextmanager
def table(folder: Path) -> Iterator[Table]:
    yield Table(folder)


@pytest.mark.parametrize("case", [SinkCase($Name, table, once=True)])
class Test$Name(SinkContract):
    """A test for each promise of a sink. What is special to this one has its tests below."""
'''

_SINK_GRAPH = """\
version: 1
name: $name
cameras:
  front: {url: "asset:vtest.avi", duration_s: 10}   # `camgraph assets pull` brings it; or write the path of a video
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture}
  infer:   {use: infer, from: prepare, with: {model: "asset:movenet-multipose.onnx"}}
  people:  {use: decode, from: infer}
  tracks:  {use: track, from: people}
  actions: {use: rules, from: tracks, with: {rules: [{id: somebody, when: age >= 0.5s, once: true}]}}
  keep:    {use: $name, from: actions, with: {path: events.db, only: {kind: incident}}}
"""

_SOURCE = '''\
"""Takes pictures from cameras that offer a JPEG at an address, again and again."""

import time
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import cv2
import numpy as np
from camgraph.pipeline.messages import Message, Stamp
from camgraph.pipeline.stage import CameraSettings, CameraState, Settings, Source, Stop
from camgraph.stages.messages import Frame
from pydantic import Field

STATES: dict[int, CameraState] = {401: "unauthorised", 403: "unauthorised", 404: "gone"}
MOST_BYTES = 1 << 24
WAIT_S = 3.0


class ${Name}Camera(CameraSettings):
    url: str = Field(pattern="^https?://", description="The address of the camera's picture")
    every_s: float = Field(1, gt=0, le=5, description="Seconds from picture to picture")
    pictures: int | None = Field(None, ge=1, description="End after this many pictures; by default never")


class $Name(Source[Settings]):
    """An address -> Frame, one for each picture."""

    camera_type = ${Name}Camera
    outputs = (Frame,)

    _state: CameraState = "connecting"

    @classmethod
    def is_live(cls, camera_settings: Any) -> bool:
        return True

    @classmethod
    def still_s(cls, camera_settings: Any) -> float:
        return float(camera_settings.every_s + WAIT_S + 1)

    def frames(self, stop: Stop, resume: Stamp | None) -> Iterator[Message]:
        epoch = max(int(time.time()), resume.epoch + 1 if resume else 0)
        due, seq = time.monotonic(), 0
        while seq != self.camera_settings.pictures and not stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + self.camera_settings.every_s, time.monotonic())
            self.context.alive()
            picture = self._picture()
            if picture is not None:
                now_ns = time.monotonic_ns()
                at = Stamp(self.camera, epoch, seq, now_ns, now_ns, time.time_ns(), clock="wall")
                yield Frame.of_bgr(at, picture)
                seq += 1

    def _picture(self) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
        try:
            with urlopen(self.camera_settings.url, timeout=WAIT_S) as answer:
                coded = np.frombuffer(answer.read(MOST_BYTES), np.uint8)
        except HTTPError as error:
            self._report(STATES.get(error.code, "lost"), f"the camera answers with status {error.code}")
            return None
        except (OSError, HTTPException) as error:
            self._report("lost", f"no answer: {error}")
            return None
        picture = cv2.imdecode(coded, cv2.IMREAD_COLOR) if coded.size else None
        if picture is None:
            self._report("lost", "the camera's answer is not a picture")
            return None
        self._report("live")
        return np.asarray(picture, np.uint8)

    def _report(self, state: CameraState, why: str = "") -> None:
        if state != self._state:
            self._state = state
            self.context.camera_is(self.camera, state, why)
'''

_SOURCE_TEST = """\
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import numpy as np
import pytest
from camgraph.pipeline.messages import Message
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.testing import HandContext

from $package.$name import $Name, ${Name}Camera


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    cv2.imwrite(str(tmp_path / "now.jpg"), np.full((48, 64, 3), 200, np.uint8))
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class StopAfter:
    def __init__(self, waits: int) -> None:
        self.left = waits

    def is_set(self) -> bool:
        return self.left < 0

    def wait(self, timeout: float) -> bool:
        self.left -= 1
        return self.is_set()


def read(url: str, context: HandContext, waits: int) -> list[Message]:
    source = $Name(Settings(), "front", ${Name}Camera(url=url, every_s=0.01), context)
    return list(source.frames(StopAfter(waits), None))


def test_each_picture_becomes_a_frame(address: str, tmp_path: Path) -> None:
    context = HandContext(tmp_path, tmp_path)
    frames = read(f"{address}/now.jpg", context, waits=3)
    assert [frame.stamp.seq for frame in frames] == [0, 1, 2]
    assert context.camera_states == [("front", "live", "")]


def test_a_picture_that_is_missing_is_reported_once(address: str, tmp_path: Path) -> None:
    context = HandContext(tmp_path, tmp_path)
    assert read(f"{address}/none.jpg", context, waits=3) == []
    assert context.camera_states == [("front", "gone", "the camera answers with status 404")]
"""

_SOURCE_GRAPH = """\
version: 1
name: $name
cameras:
  front: {url: "http://127.0.0.1:8000/now.jpg", every_s: 0.2, pictures: 25}   # the address of a camera's picture
stages:
  capture: {use: $name}
  prepare: {use: preprocess, from: capture}
  infer:   {use: infer, from: prepare, with: {model: "asset:movenet-multipose.onnx"}}
  people:  {use: decode, from: infer}
  tracks:  {use: track, from: people}
  actions: {use: rules, from: tracks, with: {rules: [{id: somebody, when: age >= 0.5s, once: true}]}}
  log:     {use: sink_jsonl, from: actions, with: {path: events.jsonl, mode: replace}}
"""

_README = """\
# $folder

The $kind `$name` for camgraph.

| command | does |
|---|---|
| `python -m pip install -e '.[dev]'` | installs the package, in the environment that has camgraph |
| `python -m pytest` | tests the $kind |
| `camgraph stages $name` | shows the settings of the $kind |
| `camgraph check $name.yaml` | finds the mistakes in the graph that uses the $kind |
| `camgraph run $name.yaml` | runs that graph |

`camgraph help $page` explains how to change all of this.
"""


def _package(kind: str, code: str, test: str, graph: str) -> Mapping[str, str]:
    return {
        "pyproject.toml": _PROJECT,
        "$package/__init__.py": "",
        "$package/$name.py": code,
        "tests/test_$name.py": test,
        "$name.yaml": graph,
        "README.md": _README.replace("$kind", kind).replace("$page", f"write_a_{kind}"),
        ".gitignore": _IGNORED,
    }


SKELETONS = {
    "stage": _package("stage", _STAGE, _STAGE_TEST, _STAGE_GRAPH),
    "sink": _package("sink", _SINK, _SINK_TEST, _SINK_GRAPH),
    "source": _package("source", _SOURCE, _SOURCE_TEST, _SOURCE_GRAPH),
}
"""Kind -> path -> text, with placeholders in both."""
