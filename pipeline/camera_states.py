"""How the live cameras of a run are, out of what their sources say and what becomes of their processes.

    starting --> connecting --> live <--back-- stalled | lost | unauthorised | gone
                     |            |                          ^
                     '------------'----------- lost ---------'

From the first of the four until it is `live` again is one *loss*, whatever of the four it is meanwhile; a camera that
cannot be reached in the first place is lost as well. A process that dies takes its cameras along, and `connecting`,
which its successor says, ends no loss. A source that says nothing of its camera is live with its first frame.

Nothing here reads a clock: times are CLOCK_MONOTONIC in ns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

AWAY = frozenset({"stalled", "lost", "unauthorised", "gone"})
_SECOND_NS = 1_000_000_000

Fact = str | int | float


@dataclass(frozen=True, slots=True)
class Change:
    """A camera is in another state since `at_ns`, after it was `was` for `for_s`.

    `loss`: not 0 where a loss begins with it, or is over; the camera's losses count from 1. `lost_s`: how long that
    was, None where it begins.
    """

    camera: str
    state: str
    why: str
    was: str
    for_s: float
    at_ns: int
    loss: int = 0
    lost_s: float | None = None


@dataclass(frozen=True, slots=True)
class CameraNow:
    """`state` is "" where nothing is known of it but its process. `losses`: how often it was away, now included."""

    state: str = ""
    why: str = ""
    since_s: float = 0.0
    losses: int = 0
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(slots=True)
class _Camera:
    """`lost_ns`: since when the present loss, None while there is none. `over`: nothing more is heard of it."""

    since_ns: int
    state: str = ""
    why: str = ""
    losses: int = 0
    lost_ns: int | None = None
    speaks: bool = False
    was_live: bool = False
    over: bool = False
    facts: Mapping[str, Fact] = field(default_factory=dict)


class CameraStates:
    """All cameras of a run. Who calls it passes on each `Change`; None: there is nothing to pass on."""

    def __init__(self, cameras: Iterable[str], live: Collection[str], now_ns: int) -> None:
        self._cameras: dict[str, _Camera] = {}
        self._live: Collection[str] = ()
        self._stopped = False
        self.follow(cameras, live, now_ns)

    def follow(self, cameras: Iterable[str], live: Collection[str], now_ns: int) -> None:
        """The run's cameras from now on. Of one that went and comes back the losses are counted on."""
        wanted, self._live = tuple(cameras), frozenset(live)
        for camera, known in self._cameras.items():
            known.over |= camera not in wanted
        for camera in wanted:
            before = self._cameras.get(camera)
            if before is None or before.over:
                self._cameras[camera] = _Camera(now_ns, losses=before.losses if before else 0)

    # ---- what happens

    def told(self, camera: str, state: str, why: str, at_ns: int) -> Change | None:
        """The source says how its camera is."""
        known = self._heard(camera)
        if known is None:
            return None
        known.speaks = True
        if state == "connecting" and known.lost_ns is not None:
            return None
        return _moved(camera, known, state, why, at_ns)

    def brought(self, camera: str, at_ns: int) -> Change | None:
        """A frame has come."""
        known = self._heard(camera)
        if known is None or known.speaks or camera not in self._live:
            return None
        return _moved(camera, known, "live", "", at_ns)

    def died(self, camera: str, why: str, at_ns: int) -> Change | None:
        """The camera's process is dead, and will be started again."""
        known = self._heard(camera)
        if known is None or camera not in self._live:
            return None
        return _moved(camera, known, "lost", why, at_ns)

    def shows(self, camera: str, facts: Mapping[str, Fact]) -> None:
        """What is known of the camera by now, in place of what was."""
        if camera in self._cameras:
            self._cameras[camera].facts = dict(facts)

    def ended(self, camera: str) -> None:
        """The camera has ended: how it is says nothing more."""
        if camera in self._cameras:
            self._cameras[camera].over = True

    def stop(self) -> None:
        """The run is stopped: a camera that goes away now is not lost."""
        self._stopped = True

    def _heard(self, camera: str) -> _Camera | None:
        """The camera, if it is one that is still listened to."""
        known = self._cameras.get(camera)
        return None if known is None or known.over or self._stopped else known

    # ---- how they are

    def now(self, now_ns: int) -> dict[str, CameraNow]:
        """All of them."""
        return {
            camera: CameraNow(known.state, known.why, _seconds(now_ns - known.since_ns), known.losses, known.facts)
            for camera, known in self._cameras.items()
        }

    def absent(self) -> dict[str, str]:
        """Camera -> how it is and why, of those that were tried and never live."""
        return {
            camera: ": ".join(filter(None, (known.state, known.why)))
            for camera, known in self._cameras.items()
            if known.lost_ns is not None and not known.was_live
        }


def _moved(camera: str, known: _Camera, state: str, why: str, at_ns: int) -> Change | None:
    """Put the camera into this state; None where it is in it already."""
    known.why = why
    if state == known.state:
        return None
    at_ns = max(at_ns, known.since_ns)
    was, for_s = known.state or "starting", _seconds(at_ns - known.since_ns)
    known.state, known.since_ns = state, at_ns
    known.was_live |= state == "live"
    loss, lost_s = 0, None
    if state in AWAY and known.lost_ns is None:
        known.lost_ns = at_ns
        known.losses += 1
        loss = known.losses
    elif state == "live" and known.lost_ns is not None:
        loss, lost_s = known.losses, _seconds(at_ns - known.lost_ns)
        known.lost_ns = None
    return Change(camera, state, why, was, for_s, at_ns, loss, lost_s)


def _seconds(ns: int) -> float:
    return round(ns / _SECOND_NS, 3)
