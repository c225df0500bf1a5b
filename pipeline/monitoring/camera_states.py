"""The states of a run's live cameras, from their sources' reports and the deaths of their processes.

    starting --> connecting --> live <--back-- stalled | lost | unauthorised | gone
                     |            |                          ^
                     '------------'----------- lost ---------'

A *loss* lasts from the first of the four until the camera is `live` again, even if it changes between the four; a
camera that cannot be reached at the start is lost as well. A process that dies takes its cameras along, except
paused ones. The `connecting` of its successor ends no loss. A camera whose source reports no state is live with its
first frame.

Each loss has one end: the camera is live again (a `Change`), or is no longer wanted (a `LossOver`).

Nothing here reads a clock: times are CLOCK_MONOTONIC in ns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from camgraph.pipeline.errors import ProblemText
from camgraph.pipeline.messages import EndReason
from camgraph.pipeline.stage import AWAY, CameraState

ERROR_IDS: Mapping[str, str] = {
    "stalled": "camera-silent",
    "lost": "camera-lost",
    "unauthorised": "camera-refuses",
    "gone": "camera-no-stream",
}
"""State -> the kind of error, for `camgraph explain`."""

MOST_DEPARTED = 1000
"""How many removed cameras keep their number of losses, the last ones removed."""
_SECOND_NS = 1_000_000_000

Fact = str | int | float
LossEnd = Literal["removed", "replaced", "stopped", "end", "error"]
"""Why a lost camera is no longer wanted: it was removed, or given other settings; the run is being stopped; it has
ended by itself, or by an error."""


class StateChange(NamedTuple):
    """A source's report: the state of its camera since a time (CLOCK_MONOTONIC), and the reason."""

    camera: str
    state: CameraState
    why: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class Change:
    """A camera is in another state since `at_ns`, after it was `was` for `for_s`.

    `loss`: the number of the loss that begins or ends with the change, else 0; the losses of a run are numbered from 1,
    over all cameras. `lost_s`: the loss's duration, None if it begins.
    """

    camera: str
    state: CameraState
    why: str
    was: CameraState | Literal["starting"]
    for_s: float
    at_ns: int
    loss: int = 0
    lost_s: float | None = None


@dataclass(frozen=True, slots=True)
class LossOver:
    """A loss has ended without the camera's return, `lost_s` after it began."""

    camera: str
    reason: LossEnd
    at_ns: int
    loss: int
    lost_s: float


@dataclass(frozen=True, slots=True)
class Over:
    """A camera has ended, after it was `was` for `for_s`; `loss`: if it was lost."""

    was: CameraState | Literal["starting"]
    for_s: float
    loss: LossOver | None = None


@dataclass(frozen=True, slots=True)
class CameraNow:
    """`state` is "" if only its process is known. `losses`: the number of losses, the present one included."""

    state: CameraState | Literal[""] = ""
    why: str = ""
    since_s: float = 0.0
    losses: int = 0
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(slots=True)
class _Camera:
    """`loss`: the number of the present loss, which began at `lost_ns`; 0 if there is none. `over`: no more reports
    are expected. `frames`: the count in its process's last report; None if that includes frames of an earlier camera
    of the same name, and their number is not known.
    """

    since_ns: int
    came_ns: int
    state: CameraState | Literal[""] = ""
    why: str = ""
    losses: int = 0
    loss: int = 0
    lost_ns: int = 0
    speaks: bool = False
    was_live: bool = False
    over: bool = False
    frames: int | None = 0
    facts: Mapping[str, Fact] = field(default_factory=dict)


class CameraStates:
    """All cameras of a run. The caller passes on each `Change` and `LossOver`; None means nothing to pass on."""

    def __init__(self, cameras: Iterable[str], live: Collection[str], now_ns: int) -> None:
        self._cameras: dict[str, _Camera] = {}
        self._departed: dict[str, _Camera] = {}
        self._live: Collection[str] = ()
        self._losses = 0
        self._stopped = False
        self.follow(cameras, live, now_ns)

    def follow(
        self, cameras: Iterable[str], live: Collection[str], now_ns: int, wanted: Collection[str] = ()
    ) -> list[LossOver]:
        """Follow the run's cameras from now on; removed ones that are `wanted` come again with other settings.

        The losses of a camera that comes again under its name are counted on.
        """
        here, self._live = dict.fromkeys(cameras), frozenset(live)
        over = [self._left(camera, wanted, now_ns) for camera in list(self._cameras) if camera not in here]
        for camera in here:
            if camera not in self._cameras:
                self._cameras[camera] = _successor(self._departed.pop(camera, None), now_ns)
        return [one for one in over if one]

    def _left(self, camera: str, wanted: Collection[str], now_ns: int) -> LossOver | None:
        known = self._cameras.pop(camera)
        self._departed[camera] = known
        if len(self._departed) > MOST_DEPARTED:
            del self._departed[next(iter(self._departed))]
        return _closed(camera, known, "replaced" if camera in wanted else "removed", now_ns)

    # ---- changes

    def reported(self, camera: str, state: CameraState, why: str, at_ns: int) -> Change | None:
        """The source reports its camera's state. A report from before the camera was added is about an earlier one."""
        known = self._present(camera)
        if known is None or at_ns < known.came_ns:
            return None
        known.speaks = True
        if state == "connecting" and known.loss:
            return None
        return self._moved(camera, known, state, why, at_ns)

    def brought(self, camera: str, frames: int, at_ns: int) -> Change | None:
        """The camera's process has counted this number of frames in all."""
        known = self._present(camera)
        if known is None or known.speaks or camera not in self._live:
            return None
        before, known.frames = known.frames, frames
        if before is None or frames == before:
            return None
        return self._moved(camera, known, "live", "", at_ns)

    def died(self, camera: str, why: str, at_ns: int) -> Change | None:
        """The camera's process is dead, and will restart."""
        known = self._present(camera)
        if known is None or camera not in self._live:
            return None
        known.frames = 0
        return self._moved(camera, known, "lost", why, at_ns)

    def shows(self, camera: str, facts: Mapping[str, Fact]) -> None:
        """The present facts about the camera, which replace the earlier ones."""
        if camera in self._cameras:
            self._cameras[camera].facts = dict(facts)

    def ended(self, camera: str, reason: EndReason, at_ns: int) -> Over | None:
        """The camera has ended, and its state means nothing more. None if it had ended before.

        The loss of a `removed` one goes on until `follow`, which knows the reason.
        """
        known = self._cameras.get(camera)
        if known is None or known.over:
            return None
        known.over = True
        loss = None if reason == "removed" else _closed(camera, known, reason, at_ns)
        return Over(known.state or "starting", _seconds(max(0, at_ns - known.since_ns)), loss)

    def end_losses(self, at_ns: int) -> list[LossOver]:
        """The run is being stopped: the losses of all lost cameras are over."""
        over = [_closed(camera, known, "stopped", at_ns) for camera, known in self._cameras.items()]
        return [one for one in over if one]

    def stop(self) -> None:
        """The run is being stopped: a camera that goes away from now on is not lost."""
        self._stopped = True

    def _present(self, camera: str) -> _Camera | None:
        """Return the camera, if it is present and not over."""
        known = self._cameras.get(camera)
        return None if known is None or known.over or self._stopped else known

    # ---- the present states

    def now(self, now_ns: int) -> dict[str, CameraNow]:
        """All cameras."""
        return {
            camera: CameraNow(known.state, known.why, _seconds(now_ns - known.since_ns), known.losses, known.facts)
            for camera, known in self._cameras.items()
        }

    def absent(self) -> dict[str, ProblemText]:
        """Camera -> its state and the reason, for cameras that were tried and never live."""
        return {
            camera: ProblemText(
                ": ".join(filter(None, (known.state, known.why))), error_id=ERROR_IDS.get(known.state, "")
            )
            for camera, known in self._cameras.items()
            if known.state in AWAY and not known.was_live
        }

    def _moved(self, camera: str, known: _Camera, state: CameraState, why: str, at_ns: int) -> Change | None:
        """Put the camera into this state; None if it is in it already."""
        known.why = why
        if state == known.state:
            return None
        at_ns = max(at_ns, known.since_ns)
        was, for_s = known.state or "starting", _seconds(at_ns - known.since_ns)
        known.state, known.since_ns = state, at_ns
        known.was_live |= state == "live"
        loss, lost_s = 0, None
        if state in AWAY and not known.loss:
            self._losses += 1
            loss = known.loss = self._losses
            known.losses, known.lost_ns = known.losses + 1, at_ns
        elif state == "live" and known.loss:
            loss, lost_s = known.loss, _seconds(at_ns - known.lost_ns)
            known.loss = 0
        return Change(camera, state, why, was, for_s, at_ns, loss, lost_s)


def _successor(before: _Camera | None, now_ns: int) -> _Camera:
    """A camera that was just added; `before`: the earlier one of its name."""
    if before is None:
        return _Camera(now_ns, now_ns)
    return _Camera(now_ns, now_ns, losses=before.losses, was_live=before.was_live, frames=None)


def _closed(camera: str, known: _Camera, reason: LossEnd, at_ns: int) -> LossOver | None:
    """The end of the camera's loss, if it is lost."""
    if not known.loss:
        return None
    loss, known.loss = known.loss, 0
    return LossOver(camera, reason, at_ns, loss, _seconds(max(0, at_ns - known.lost_ns)))


def _seconds(ns: int) -> float:
    return round(ns / _SECOND_NS, 3)
