"""The counters of all cameras of a stage: kept over restarts, set to zero when that is wanted, and reported.

    reset: "00:00"     set to zero once a day, by the clock of the file's time zone
    report: 1h         reported at each full hour, when they are set to zero, and when the camera ends

A report has the numbers before the frame in which it is due. Periods are counted from each midnight in the file's time
zone (in UTC if it has none; in a file without a date, from its beginning), so the last one of a day may be shorter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from camgraph.pipeline.messages import Stamp
from camgraph.stages.events import digest
from camgraph.stages.rules.language.counters import Counter, Of
from camgraph.stages.rules.rule_file import DAY_NS, CounterDefinition, RuleFile, duration_ns, for_camera
from camgraph.stages.rules.schedule import minutes
from camgraph.stages.video.dates import zone_of

Resets = Mapping[str, Mapping[str, int]]
"""Counter -> camera -> the number of the last command that set it to zero."""
Due = Literal["report", "reset", "end"]


@dataclass(slots=True)
class _Account:
    """A counter of one camera. `day`: the day that it counts, from reset to reset; `obeyed`: the last command.

    Of the period that the next report is about: when it began by the clock (ns since 1970, whatever its time zone), its
    first frame (Unix, ns), and the counts at its beginning.
    """

    name: str
    definition: CounterDefinition
    hash: str
    counter: Counter
    day: str = ""
    obeyed: int = 0
    period: int = -1
    begun_ns: int = -1
    forward_before: int = 0
    backward_before: int = 0

    def begin_period(self, at_ns: int) -> None:
        """The next report is about the time from now on."""
        self.begun_ns = at_ns
        self.forward_before, self.backward_before = self.counter.forward, self.counter.backward


_KEPT = ("hash", "day", "obeyed", "period", "begun_ns", "forward_before", "backward_before")
_KEPT_COUNTS = ("forward", "backward", "inside")
_BEFORE_ALL = (-1, -1)
_PUT_BACK_S = 7200
"""By so much a clock may be put back; one that goes back by more was wrong before."""


@dataclass(frozen=True, slots=True)
class Report:
    """The numbers of a counter at one moment: since it was set to zero, and of the period since the last report.

    Times are Unix nanoseconds.
    """

    name: str
    definition: CounterDefinition
    due: Due
    begun_ns: int
    ended_ns: int
    inside: int
    since_reset: Mapping[str, int]
    in_period: Mapping[str, int]


class Counting:
    """Camera -> its counters. `path`: where the counts are kept, None if they need not be."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._accounts: dict[str, dict[str, _Account]] = {}
        self._kept: dict[str, Any] = {}
        """Camera -> its accounts as they are written down, and the last frame of which there was an event."""
        self._emitted_up_to: dict[str, tuple[int, int]] = {}
        """Camera -> the last frame of which an earlier process made an event: up to it, frames may come once more."""
        self.resets: Resets = {}
        """The commands so far. Set it before each frame."""
        self.why_unkept = ""
        """Why the disk does not take the counts at present; "" while it does."""

    def open(self) -> None:
        """Go on from the counts that an earlier process of this run has kept."""
        if self._path is not None and self._path.exists():
            try:
                self._kept = json.loads(self._path.read_text())
                self._emitted_up_to = {
                    camera: tuple(kept["emitted"]) for camera, kept in self._kept.items() if kept["emitted"]
                }
            except (ValueError, TypeError, KeyError, AttributeError):  # damaged: the counts begin at zero
                self._kept = {}

    def of(self, camera: str, file: RuleFile) -> Mapping[str, Counter]:
        """The counters that these rules give a camera; those that are as before go on."""
        before = self._accounts.get(camera, {})
        found: dict[str, _Account] = {}
        for name, definition in file.counters.items():
            kind: Of = "line" if definition.line is not None else "zone"
            shape = definition.line or definition.zone or ""
            drawn = for_camera((file.lines if kind == "line" else file.zones).get(shape, {}), camera)
            if drawn is None:
                continue
            own = digest(kind, repr(drawn), definition.model_dump(mode="json"), file.time_zone)
            if name in before and before[name].hash == own:
                found[name] = before[name]
                continue
            obeyed = self.resets.get(name, {}).get(camera, 0)
            found[name] = self._restored(camera, _Account(name, definition, own, Counter(kind, shape), obeyed=obeyed))
        self._accounts[camera] = found
        return {name: account.counter for name, account in found.items()}

    def _restored(self, camera: str, account: _Account) -> _Account:
        kept = self._kept.get(camera, {}).get("counters", {}).get(account.name, {})
        if kept.get("hash") == account.hash:
            for name in _KEPT:
                setattr(account, name, kept[name])
            for name in _KEPT_COUNTS:
                setattr(account.counter, name, int(kept[name]))
        return account

    def begin_frame(self, file: RuleFile, at: Stamp, *, dated: bool) -> list[Report]:
        """Set to zero what is due to be, and return the reports that are due. `dated`: its time is a time of day.

        A frame that comes again waits for a new one: events of repeated frames are taken for repetitions.
        """
        camera, at_ns, shown = at.camera, at.wall_ns, None
        if at.place <= self._emitted_up_to.get(camera, _BEFORE_ALL):
            return []
        reports: list[Report] = []
        for account in self._accounts.get(camera, {}).values():
            if account.definition.reset is None and account.definition.report is None and not self.resets:
                continue
            shown = shown or _shown(at_ns, file.time_zone if dated else None)
            reports += self._due(account, camera, at_ns, shown, dated=dated)
        return reports

    def _due(self, account: _Account, camera: str, at_ns: int, shown: datetime, *, dated: bool) -> Iterator[Report]:
        if account.begun_ns < 0:
            account.begin_period(at_ns)
        if account.begun_ns - at_ns > _PUT_BACK_S * 10**9:  # the clock was wrong then
            account.day, account.period = "", -1
        account.begun_ns = min(account.begun_ns, at_ns)
        command = self.resets.get(account.name, {}).get(camera, 0)
        if command > account.obeyed or (dated and _day_is_over(account, shown)):
            account.obeyed = max(command, account.obeyed)
            _period_is_over(account, shown, dated=dated)
            yield from _report(account, "reset", at_ns)
            account.counter.reset()
            account.begin_period(at_ns)
        elif _period_is_over(account, shown, dated=dated):
            yield from _report(account, "report", at_ns)
            account.begin_period(at_ns)

    def end(self, camera: str, at_ns: int) -> list[Report]:
        """The camera has ended: its last reports. One of the same name that comes later begins at zero."""
        self._emitted_up_to.pop(camera, None)
        reports = [
            report
            for account in self._accounts.pop(camera, {}).values()
            if account.begun_ns >= 0
            for report in _report(account, "end", at_ns)
        ]
        if self._kept.pop(camera, None) is not None:
            self._write()
        return reports

    def numbers(self, camera: str) -> dict[str, dict[str, int]]:
        """The present numbers of a camera's counters, by the names that conditions use."""
        return {name: account.counter.numbers for name, account in self._accounts.get(camera, {}).items()}

    def keep(self, at: Stamp, *, emitted: bool) -> bool:
        """Write the counts of a camera down if they have changed, and return whether they have.

        If the disk does not take them, `why_unkept` says so, and the next frame tries again: events matter more.
        `emitted`: there was an event of this frame.
        """
        accounts, before = self._accounts.get(at.camera), self._kept.get(at.camera, {"emitted": None})
        if not accounts:
            return False
        counters = {
            name: {
                **{kept: getattr(account, kept) for kept in _KEPT},
                **{kept: getattr(account.counter, kept) for kept in _KEPT_COUNTS},
            }
            for name, account in accounts.items()
        }
        if not emitted and before.get("counters") == counters:
            if self.why_unkept:
                self._write()
            return False
        self._kept[at.camera] = {"emitted": at.place if emitted else before["emitted"], "counters": counters}
        self._write()
        return True

    def _write(self) -> None:
        if self._path is None:
            return
        beside = self._path.with_suffix(".new")
        try:
            beside.write_text(json.dumps(self._kept))
            beside.replace(self._path)
        except OSError as error:
            self.why_unkept = f"{self._path}: {error.strerror or error}"
        else:
            self.why_unkept = ""


def _shown(at_ns: int, time_zone: str | None) -> datetime:
    """The time that a clock shows, which knows no time zone."""
    zone = zone_of(time_zone) if time_zone is not None else UTC
    return datetime.fromtimestamp(at_ns // 10**9, UTC).astimezone(zone).replace(tzinfo=None)


def _day_is_over(account: _Account, shown: datetime) -> bool:
    """Whether the time of `reset` has come; a clock that is put back begins no day."""
    if account.definition.reset is None:
        return False
    day = (shown - timedelta(minutes=minutes(account.definition.reset) % (24 * 60))).date()
    before, account.day = account.day, day.isoformat()
    if before > account.day:
        known = datetime.combine(date.fromisoformat(before), datetime.min.time())
        if _is_put_back(known + timedelta(minutes=minutes(account.definition.reset) % (24 * 60)) - shown):
            account.day = before
    return "" != before < account.day


def _period_is_over(account: _Account, shown: datetime, *, dated: bool) -> bool:
    """Whether the next period has begun; a clock that is put back begins none."""
    report = account.definition.report
    if report is None or report == "reset":
        return False
    now_ns = (shown - datetime(1970, 1, 1)) // timedelta(seconds=1) * 10**9
    length_ns = duration_ns(report)
    within_ns = now_ns % DAY_NS if dated and length_ns < DAY_NS else now_ns
    before, account.period = account.period, now_ns - within_ns % length_ns
    if before > account.period and _is_put_back(timedelta(seconds=(before - now_ns) / 1e9)):
        account.period = before
    return -1 < before < account.period


def _is_put_back(behind: timedelta) -> bool:
    """Whether a clock is a little behind the last day or period that it began, as in the night when summer ends.

    If it is farther behind, it was wrong before.
    """
    return behind <= timedelta(seconds=_PUT_BACK_S)


def _report(account: _Account, due: Due, at_ns: int) -> Iterator[Report]:
    if account.definition.report is None:
        return
    counter = account.counter
    forward, backward = counter.forward - account.forward_before, counter.backward - account.backward_before
    yield Report(
        account.name,
        account.definition,
        due,
        account.begun_ns,
        at_ns,
        counter.inside,
        counter.named(counter.forward, counter.backward),
        counter.named(forward, backward),
    )
