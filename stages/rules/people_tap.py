"""Tells programs that watch a camera who is in its picture, and which rules fire: a line of JSON for each frame.

A program follows a side channel in the state folder of `rules`; its request is the camera's name. Positions are
fractions of the frame, so that they fit a picture of any size:

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
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.names import nfc
from camgraph.pipeline.system.side_channel import Client, SideChannel
from camgraph.pipeline.system.side_link import framed
from camgraph.stages.rules.firing import Firing, shapes_of
from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.rule_set import RuleSet
from camgraph.stages.vision.skeleton import COCO_17_BONES

SUFFIX = ".people"
_LOOK_S = 0.1
_MOST_FOLLOWERS = 64
_MOST_WAITING = 1 << 20
_MOST_NAME = 1000
_ASK_S = 5.0


def socket_path(state_folder: Path, worker: int) -> Path:
    """Of one process of the stage whose folder this is."""
    return state_folder / f"{worker}{SUFFIX}"


@dataclass(slots=True, eq=False)
class _Follower:
    client: Client
    camera: str
    rules: RuleSet | None = None
    """Those whose shapes it knows, of frames of `size`."""
    size: tuple[int, int] = (0, 0)


class PeopleTap:
    """See the module. For one thread."""

    def __init__(self, path: Path, log: Logger) -> None:
        self._channel = SideChannel(
            path,
            self._follow,
            log,
            name="people",
            within_s=_ASK_S,
            most_request=_MOST_NAME,
            most_clients=_MOST_FOLLOWERS,
            most_waiting=_MOST_WAITING,
        )
        self.close = self._channel.close
        self._followers: list[_Follower] = []
        self._look_at_s = 0.0

    def open(self) -> None:
        with suppress(OSError, AttributeError):  # nobody can look then, and all else goes on
            self._channel.open()

    def wants(self, camera: str) -> bool:
        """Whether somebody looks at this camera."""
        now_s = time.monotonic()
        if now_s >= self._look_at_s:
            self._look_at_s = now_s + _LOOK_S
            self._channel.turn()
            self._followers = [one for one in self._followers if not one.client.is_gone]
        return any(one.camera == camera for one in self._followers)

    def offer(self, picture: Picture, rules: RuleSet, firing: Sequence[Firing]) -> None:
        """Tell of a frame to those who look at its camera."""
        stamp = picture.moment
        frame = b""
        for follower in [one for one in self._followers if one.camera == stamp.camera]:
            if follower.rules is not rules or follower.size != picture.size:
                follower.rules, follower.size = rules, picture.size
                self._tell(follower, _line(_shapes(rules, stamp.camera, picture.size)))
            frame = frame or _line(_people(stamp, picture, firing))
            self._tell(follower, frame)

    def _follow(self, client: Client) -> None:
        if not isinstance(client.message, str):
            raise WireError("expected the name of a camera")
        self._followers.append(_Follower(client, nfc(client.message)))

    def _tell(self, follower: _Follower, frame: bytes) -> None:
        if not follower.client.send(frame):
            follower.client.part()


def _line(values: dict[str, Any]) -> bytes:
    return framed(json.dumps(values, separators=(",", ":")).encode())


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
