"""When a condition that is true now and then becomes one incident.

    truth      ..TT?T?T?TTTT?TTTT..T......TTT       T true  . false  ? unknown or unseen
                 |<-for->|          |<hold>|
    incident             start             end      it lasts from the first T to the last one

    idle --true--> counting --true for `for`--> running --not true for `hold`--> idle (`cooldown` from the last T)
      ^                |
      +---- false -----+   or unknown for longer than `gap`

Time counts from one true frame to the next, also over a hole of unknown or unseen frames that is no longer than `gap`:
who is found in every second frame only lies as long as who is found in each. `min_visible` asks that enough of the
frames in a hole could be judged. The caller widens `gap` for cameras whose frames are farther apart. With a `hold`, one
frame that is not true ends nothing by itself, however long ago the frame before was: `hold` shall bridge a glitch at 1
frame a second, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

Why = Literal["condition", "unseen"]


class Moment(Protocol):
    """Any object with a stream time."""

    @property
    def time_ns(self) -> int: ...


M = TypeVar("M", bound=Moment)


@dataclass(frozen=True, slots=True)
class Timing:
    """All in nanoseconds. `min_visible`: judged frames / frames in which the people were seen, while counting."""

    for_ns: int = 0
    hold_ns: int = 0
    cooldown_ns: int = 0
    update_ns: int | None = None
    min_visible: float = 0.0


@dataclass(slots=True)
class Incident(Generic[M]):
    """From the first moment of truth to the last. `true_ns` is the time counted for `for`; `visible` is judged /
    seen.
    """

    begun: M
    last: M
    true_ns: int = 0
    judged: int = 1
    seen: int = 1
    updates: int = 0
    updated_ns: int = 0
    running: bool = False

    @property
    def visible(self) -> float:
        return self.judged / self.seen


@dataclass(frozen=True, slots=True)
class Step(Generic[M]):
    """Something to tell: of an `incident`, and of an end, `why`."""

    phase: Literal["start", "update", "end"]
    incident: Incident[M]
    why: Why = "condition"


class Watch(Generic[M]):
    """One rule watching one person, one pair or one scene."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.incident: Incident[M] | None = None
        self._before: M | None = None
        """The last true frame, if none was false since."""
        self._frames_without = 0
        """Frames in a row in which it was not true."""
        self._rests_until_ns: int | None = None

    def idle(self, time_ns: int) -> bool:
        """True when nothing of this watch matters any more from this time on."""
        return self.incident is None and (self._rests_until_ns is None or time_ns >= self._rests_until_ns)

    def step(self, now: M, truth: bool | None, gap_ns: int, *, seen: bool = True) -> list[Step[M]]:
        """Take the next frame. `truth` None: unknown, or (`seen` False) not in this frame."""
        self._frames_without = 0 if truth else self._frames_without + 1
        steps = self._end_if_over(now, truth, gap_ns, seen)
        if truth:
            steps += self._true(now, gap_ns)
        else:
            self._before = None if truth is False else self._before
            self._not_true(now, truth, gap_ns, seen)
        return steps

    def _end_if_over(self, now: M, truth: bool | None, gap_ns: int, seen: bool) -> list[Step[M]]:
        incident = self.incident
        if incident is None:
            return []
        silent_ns = now.time_ns - incident.last.time_ns
        if not incident.running:
            if truth and silent_ns > gap_ns:
                self._drop()
            return []
        if not self._is_over(silent_ns, truth, gap_ns):
            return []
        self._rests_until_ns = incident.last.time_ns + self.timing.cooldown_ns
        self._drop()
        return [Step("end", incident, "condition" if seen and not truth else "unseen")]

    def _is_over(self, silent_ns: int, truth: bool | None, gap_ns: int) -> bool:
        hold_ns = self.timing.hold_ns
        if silent_ns > max(hold_ns, gap_ns):
            return True
        enough = self._frames_without > 1 or not hold_ns
        return not truth and enough and silent_ns >= hold_ns

    def _drop(self) -> None:
        self.incident = self._before = None

    def _true(self, now: M, gap_ns: int) -> list[Step[M]]:
        incident = self.incident
        if incident is None:
            incident = self.incident = Incident(now, now)
        else:
            incident.judged += 1
            incident.seen += 1
            if self._before is not None and now.time_ns - self._before.time_ns <= gap_ns:
                incident.true_ns += now.time_ns - self._before.time_ns
        incident.last = self._before = now
        return self._reported(incident, now)

    def _reported(self, incident: Incident[M], now: M) -> list[Step[M]]:
        timing = self.timing
        if incident.running:
            if timing.update_ns is None or now.time_ns - incident.updated_ns < timing.update_ns:
                return []
            incident.updates += 1
            incident.updated_ns = now.time_ns
            return [Step("update", incident)]
        rested = self._rests_until_ns is None or now.time_ns >= self._rests_until_ns
        if not rested or incident.true_ns < timing.for_ns or incident.visible < timing.min_visible:
            return []
        incident.running, incident.updated_ns = True, now.time_ns
        return [Step("start", incident)]

    def _not_true(self, now: M, truth: bool | None, gap_ns: int, seen: bool) -> None:
        incident = self.incident
        if incident is None or incident.running:
            return
        incident.seen += seen
        if truth is False or now.time_ns - incident.last.time_ns > gap_ns:
            self._drop()
