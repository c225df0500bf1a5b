"""The files that `camgraph stages new` writes, with `$name` and the like for the stage's own name.

docs/write_a_stage.md and docs/write_a_sink.md begin with the same files, and a test holds that they are.
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

from pipeline.messages import Event, Stamp
from pipeline.stage import Settings, Stage
from pydantic import Field
from stages.messages import Frame


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
from pipeline.testing import feed, opened, stamp
from stages.messages import Frame

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
from collections.abc import Iterable, Sequence

from pipeline.errors import EnvironmentProblem, Unavailable
from pipeline.messages import Event, Message
from pipeline.stage import Settings, Stage
from pydantic import Field

TABLE = "CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, camera TEXT, body TEXT)"


class ${Name}Settings(Settings):
    path: str = Field(min_length=1, description="The SQLite file, relative to the graph file")


class $Name(Stage[${Name}Settings]):
    """Event -> a row of the table `events`."""

    settings_type = ${Name}Settings
    inputs = Event

    _file: sqlite3.Connection | None = None

    def open(self) -> None:
        path = self.context.base_folder / self.settings.path
        try:
            self._file = sqlite3.connect(path, timeout=1)
            self._file.execute(TABLE)
        except sqlite3.Error as error:
            raise EnvironmentProblem(f"{path}: cannot keep events there: {error}") from error
        self.context.wrote(path)

    def process(self, items: Sequence[Event]) -> Iterable[Message]:
        assert self._file
        rows = [(event.own_id, event.stamp.camera, event.body.decode()) for event in items]
        try:
            with self._file:  # one transaction: all of them are kept, or none
                self._file.executemany("INSERT OR IGNORE INTO events VALUES (?, ?, ?)", rows)
        except sqlite3.OperationalError as error:  # locked, or the disk is full: the same events come again
            raise Unavailable(f"{self.settings.path}: {error}") from error
        for event in items:
            self.context.count("written", event.stamp.camera)
        return ()

    def close(self) -> None:
        if self._file:
            self._file.close()
'''

_SINK_TEST = """\
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pipeline.errors import Unavailable
from pipeline.messages import Event
from pipeline.testing import feed, opened, stamp

from $package.$name import $Name


def event(seq: int) -> Event:
    return Event(stamp(seq), f"id{seq}", f"id{seq}", "single", b"{}")


def kept(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as file:
        return [name for (name,) in file.execute("SELECT id FROM events ORDER BY id")]


def test_an_event_that_comes_twice_is_kept_once(tmp_path: Path) -> None:
    with opened($Name, {"path": "events.db"}, folder=tmp_path) as stage:
        feed(stage, [event(0), event(1), event(0)], batch=2)
    assert kept(tmp_path / "events.db") == ["id0", "id1"]


def test_while_somebody_holds_the_file_events_wait(tmp_path: Path) -> None:
    with opened($Name, {"path": "events.db"}, folder=tmp_path) as stage:
        with closing(sqlite3.connect(tmp_path / "events.db")) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(Unavailable, match="locked"):
                feed(stage, [event(0)])
        feed(stage, [event(0)])
    assert kept(tmp_path / "events.db") == ["id0"]
"""

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
  keep:    {use: $name, from: actions, with: {path: events.db}}
"""

_README = """\
# $folder

The $kind `$name` for camgraph.

    python -m pip install -e '.[dev]'     # where camgraph is installed
    python -m pytest                      # the test of the $kind
    camgraph stages $name                 # its settings
    camgraph run $name.yaml               # a graph that uses it

`camgraph help $page` explains all that a $kind can do.
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


STAGE = _package("stage", _STAGE, _STAGE_TEST, _STAGE_GRAPH)
SINK = _package("sink", _SINK, _SINK_TEST, _SINK_GRAPH)
