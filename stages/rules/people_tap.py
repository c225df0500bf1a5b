"""Tells programs that watch a camera who is in its picture, and which rules fire: a line of JSON for each frame.

A program connects to a socket in the state folder of `rules`, which other users cannot enter, and sends the
camera's name as a line. Positions are fractions of the frame, so that they fit a picture of any size:

    {"size": [1280, 720], "zones": {"bed": [[0.1, 0.2], ...]}, "lines": {"door": [[0.5, 0], [0.5, 1]]},
     "bones": [[5, 7], ...], "floor": 0.3}
    {"epoch": 0, "at": 12.4, "people": [{"id": 3, "box": [x1, y1, x2, y2], "joints": [x, y, c, ...]}],
     "now": [{"action": "fall", "ids": [3], "why": "...", "shapes": ["bed"]}]}

`at` is the time of the stream in seconds, null if the camera gives its pictures no times; joints below `floor` are
known to none of the camera's rules. The first line comes again when the rules change. While nobody is connected, a
frame costs one look at the clock. A program that does not keep up is disconnected: nothing waits for it.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.system.local_socket import listening
from camgraph.pipeline.system.names import nfc
from camgraph.stages.rules.firing import Firing, shapes_of
from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.rule_set import RuleSet
from camgraph.stages.vision.skeleton import COCO_17_BONES

SUFFIX = ".people"
_BACKLOG = 16
_LOOK_S = 0.1
_MOST_LISTENERS = 64
_MOST_WAITING = 1 << 20
_MOST_NAME = 1000
_ASK_S = 5.0


def socket_path(state_folder: Path, worker: int) -> Path:
    """Of one process of the stage whose folder this is."""
    return state_folder / f"{worker}{SUFFIX}"


@dataclass(slots=True, eq=False)
class _Listener:
    connection: socket.socket
    until_s: float
    """Deadline for the listener to send the whole name of its camera (monotonic)."""
    asked: bytes = b""
    camera: str | None = None
    rules: RuleSet | None = None
    """Those whose shapes it knows, of frames of `size`."""
    size: tuple[int, int] = (0, 0)
    waiting: bytearray = field(default_factory=bytearray)


class PeopleTap:
    """See the module. For one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._server: socket.socket | None = None
        self._listeners: list[_Listener] = []
        self._look_at_s = 0.0

    def open(self) -> None:
        with suppress(OSError, AttributeError):  # nobody can look then, and all else goes on
            self._server = listening(self._path, _BACKLOG)

    def close(self) -> None:
        for listener in list(self._listeners):
            self._part(listener)
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)
            self._server = None

    def wants(self, camera: str) -> bool:
        """Whether somebody looks at this camera."""
        now_s = time.monotonic()
        if now_s >= self._look_at_s:
            self._look_at_s = now_s + _LOOK_S
            self._welcome()
        return any(listener.camera == camera for listener in self._listeners)

    def offer(self, picture: Picture, rules: RuleSet, firing: Sequence[Firing]) -> None:
        """Tell of a frame to those who look at its camera."""
        stamp = picture.moment
        line = b""
        for listener in [one for one in self._listeners if one.camera == stamp.camera]:
            if listener.rules is not rules or listener.size != picture.size:
                listener.rules, listener.size = rules, picture.size
                listener.waiting += _line(_shapes(rules, stamp.camera, picture.size))
            line = line or _line(_people(stamp, picture, firing))
            listener.waiting += line
            self._flush(listener)

    def _welcome(self) -> None:
        if self._server is None:
            return
        with suppress(BlockingIOError, OSError):
            connection, _ = self._server.accept()
            connection.setblocking(False)
            if len(self._listeners) >= _MOST_LISTENERS:
                self._part(min(self._listeners, key=lambda one: one.camera is not None))
            self._listeners.append(_Listener(connection, time.monotonic() + _ASK_S))
        for listener in list(self._listeners):
            self._receive(listener)
            if listener.camera is None and time.monotonic() > listener.until_s:
                self._part(listener)

    def _receive(self, listener: _Listener) -> None:
        """Its camera; later, whether it is still there."""
        try:
            piece = listener.connection.recv(_MOST_NAME)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        listener.asked += piece
        if not piece or len(listener.asked) > _MOST_NAME:
            self._part(listener)
        elif listener.asked.endswith(b"\n"):
            listener.camera = nfc(listener.asked.decode(errors="replace").strip())

    def _flush(self, listener: _Listener) -> None:
        try:
            del listener.waiting[: listener.connection.send(listener.waiting)]
        except BlockingIOError:
            pass
        except OSError:
            self._part(listener)
        if len(listener.waiting) > _MOST_WAITING:
            self._part(listener)

    def _part(self, listener: _Listener) -> None:
        listener.waiting.clear()
        listener.connection.close()
        if listener in self._listeners:
            self._listeners.remove(listener)


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def _shapes(rules: RuleSet, camera: str, size: tuple[int, int]) -> dict[str, Any]:
    width, height = size
    shapes = shapes_of(rules, camera, size)
    named = {"zones": shapes.zones, "lines": shapes.lines}
    fractions = {
        kind: {name: [[_share(x, width), _share(y, height)] for x, y in corners] for name, corners in of.items()}
        for kind, of in named.items()
    }
    return {"size": size, **fractions, "bones": COCO_17_BONES, "floor": rules.floor(camera)}


def _people(stamp: Stamp, picture: Picture, firing: Sequence[Firing]) -> dict[str, Any]:
    width, height = picture.size
    people = [
        {
            "id": track,
            "box": [_share(value, (width, height)[n % 2]) for n, value in enumerate(box)],
            "joints": [
                value for x, y, c in joints for value in (_share(x, width), _share(y, height), _share(c, 1))
            ] if picture.joints_known else [],
        }
        for track, box, joints in zip(
            picture.ids.tolist(), picture.boxes.tolist(), picture.keypoints.tolist(), strict=True
        )
    ]  # fmt: skip
    now = [{"action": one.action, "ids": one.ids, "why": one.why, "shapes": one.shapes} for one in firing]
    at = None if stamp.pts is None else round(float(Fraction(*stamp.time_base) * stamp.pts), 6)
    return {"epoch": stamp.epoch, "at": at, "people": people, "now": now}


def _share(value: float, whole: float) -> float | None:
    """None for what is no number: JSON has none."""
    return round(value / whole, 4) if abs(value) < 1e6 else None
