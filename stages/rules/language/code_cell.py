"""A condition in Python as a cell of the language: it keeps somebody's past, and asks a function about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from camgraph.stages.rules.conditions import Declared, Past
from camgraph.stages.rules.language.people import Clock, Frame, Joints, Person
from camgraph.stages.vision.keypoint_record import KeypointRecord
from camgraph.stages.vision.skeleton import COCO_17

Reported = Mapping[str, float | str | bool]
NOTHING: Reported = {}


class AskedFunction(Protocol):
    """A function of somebody's past. It never raises: whatever goes wrong in it is unknown."""

    @property
    def name(self) -> str:
        """As rules call it."""

    @property
    def hash(self) -> str:
        """Of its code, as far as that is known."""

    @property
    def declared(self) -> Declared: ...

    def ask(self, past: Past, *parameters: Any) -> tuple[Any, Reported]:
        """True, False or None, or a float or NaN; and the values that explain it."""


class Functions(Protocol):
    """The functions that packages bring."""

    def names(self) -> Iterable[str]: ...
    def find(self, name: str) -> AskedFunction | None:
        """None if there is no such function. Raises LookupError, in words, for one that cannot be used."""


class Code:
    """`limps(0.3)`: what the function says of the person and their last seconds.

    Unknown of those who are not seen, and if a parameter is. In a frame in which it is not asked, its answer holds.
    """

    __slots__ = ("_asked_ns", "_every_ns", "_function", "_past_ns", "_record", "_unknown", "_value", "reported")

    def __init__(self, gap_ns: int, function: AskedFunction) -> None:
        declared = function.declared
        self._function = function
        self._every_ns = round(declared.every_s * 1e9)
        self._past_ns = round(declared.past_s * 1e9)
        self._record = KeypointRecord(self._past_ns, len(COCO_17))
        self._unknown: Any = None if declared.gives == "truth" else math.nan
        self._value = self._unknown
        self._asked_ns: int | None = None
        self.reported = NOTHING
        """The values that explain the present answer."""

    def step(self, clock: Clock, k: Joints, p: Person, g: Frame, *parameters: Any) -> Any:
        if p.lost_ns >= 0 or any(one != one for one in parameters):  # NaN  # noqa: PLR0124
            self.reported = NOTHING
            return self._unknown
        now_ns = clock.now_ns
        self._record.window_ns = max(self._past_ns, clock.two_ns)
        joints = np.empty((len(COCO_17), 3), np.float32)
        joints[:, :2] = np.reshape(k[: 2 * len(COCO_17)], (-1, 2))
        joints[:, 2] = p.confidences
        self._record.add(now_ns, (p.left, p.top, p.right, p.bottom), p.score, joints)
        if self._asked_ns is None or now_ns - self._asked_ns >= self._every_ns:
            self._asked_ns = now_ns
            self._value, self.reported = self._function.ask(self._past(now_ns, g), *parameters)
        return self._value

    def _past(self, now_ns: int, g: Frame) -> Past:
        record = self._record
        times_s = (record.times_ns - now_ns) / 1e9
        times_s.flags.writeable = False
        return Past(times_s, record.boxes, record.scores, record.joints, (int(g.width), int(g.height)))
