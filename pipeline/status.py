"""The state of a run, out of what its processes report: plain values for the live table, `status` and the summary."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from mmap import PAGESIZE
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from pipeline.camera_states import CameraNow
from pipeline.frame_ages import FrameAges
from pipeline.incidents import Incidents, in_short, totals
from pipeline.plan import RunPlan, UnitPlan
from pipeline.registry import find_stage
from pipeline.reports import Beat, StageBeat
from pipeline.stage import Source


class Reporting(Protocol):
    """A process as far as its reports go."""

    plan: UnitPlan
    beat: Beat
    ended: dict[str, tuple[str, str]]
    trouble: str
    """Why it has not opened its stages since its last death, "" where it has."""

    @property
    def state(self) -> str: ...

    @property
    def restarts(self) -> int: ...

    @property
    def pid(self) -> int: ...

    @property
    def shared_bytes(self) -> int: ...

    def counts(self) -> Counter[tuple[str, str]]: ...


_RATE_S = 2.0


class Meter:
    """Adds up counts over processes and incarnations, and turns them into rates."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self._started = time.monotonic()
        self._ages = FrameAges()
        self._last_frame: dict[str, tuple[int, float]] = {}
        self._source = find_stage(plan.source)
        self._here_since: dict[str, float] = {}
        self._still_limit_s: dict[str, float] = {}
        self._paused: Collection[str] = ()
        self._waiting: Collection[str] = ()
        self._incidents = Incidents()
        self._marks: list[tuple[float, dict[str, float]]] = []
        self._rates: dict[str, float] = {}
        self.follow(plan)

    def follow(self, plan: RunPlan) -> None:
        """The run has the cameras of this plan from now on."""
        now, here = time.monotonic(), plan.camera_settings
        self.plan = plan
        self._here_since = {camera: self._here_since.get(camera, now) for camera in here}
        self._still_limit_s = {camera: self._still_limit_of(values) for camera, values in here.items()}
        self._ages.keep(here)
        self._last_frame = {camera: last for camera, last in self._last_frame.items() if camera in here}
        self._incidents.forget_all_but(here)

    def rest(self, paused: Collection[str], waiting: Collection[str] = ()) -> None:
        """These rest now, and no others; the sources of those `waiting` may not begin yet.

        To be called often, for it is until then that no frame of theirs is missed.
        """
        self._paused, self._waiting = frozenset(paused), frozenset(waiting)
        silent = self._here_since.keys() & (self._paused | self._waiting)
        self._here_since.update(dict.fromkeys(silent, time.monotonic()))

    def note_ages(self, process: str, ages_ms: Mapping[str, float]) -> None:
        """Camera -> how old its newest frame was when it ended in this process."""
        self._ages.note(process, ages_ms, time.monotonic())

    def note_event(self, event: Mapping[str, Any]) -> None:
        """An event has been committed, which `read_event` has read."""
        self._incidents.note(event)

    def status(
        self,
        processes: Sequence[Reporting],
        events: list[dict[str, Any]],
        known: Mapping[str, CameraNow] = MappingProxyType({}),
        departed: Mapping[tuple[str, str], int] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """See docs/operations.md for the fields.

        `known`: camera -> how it is, as far as its source says it. `departed`: what those counted that are no more.
        """
        for process in processes:
            self.note_frames(process)
        counts: Counter[tuple[str, str]] = sum((p.counts() for p in processes), Counter(departed))
        items = {f"stage {name}": total for name, total in _stage_items(processes).items()}
        frames = {f"camera {c}": counts["frames", c] for c in self.plan.camera_settings}
        self._note_rates({**items, **frames})
        return {
            "graph": self.plan.graph,
            "uptime_s": round(time.monotonic() - self._started, 3),
            "cameras": {
                c: self._camera(c, processes, counts, known.get(c, CameraNow())) for c in self.plan.camera_settings
            },
            "stages": self._stages(processes),
            "events": [in_short(event) for event in events[-10:]],
            "actions": self._incidents.actions,
            "totals": totals(counts, self._incidents),
            "counts": sorted([name, camera, n] for (name, camera), n in counts.items()),
            "files": list(dict.fromkeys(file for p in processes for file in p.beat.files)),
            "processes": sum(1 for p in processes if p.pid),
            "memory_mb": round(sum(_memory(p.pid) + p.shared_bytes for p in processes if p.pid) / 1e6, 1),
            "units": {p.plan.name: _unit(p) for p in processes},
        }

    def note_frames(self, process: Reporting) -> None:
        """Look what frames it has brought: to be called often, for that is when they are taken to have come."""
        for (name, camera), count in process.counts().items():
            here = camera in self._here_since
            if name == "frames" and here and self._last_frame.get(camera, (0, 0.0))[0] != count:
                self._last_frame[camera] = (count, time.monotonic())

    def _note_rates(self, totals: dict[str, float]) -> None:
        now = time.monotonic()
        self._marks.append((now, totals))
        while len(self._marks) > 2 and now - self._marks[1][0] >= _RATE_S:
            self._marks.pop(0)
        then, before = self._marks[0]
        if now > then:
            self._rates = {name: (total - before.get(name, total)) / (now - then) for name, total in totals.items()}

    def _camera(
        self, camera: str, processes: Sequence[Reporting], counts: Counter[tuple[str, str]], known: CameraNow
    ) -> dict[str, Any]:
        drops = _by_reason("dropped.", camera, counts)
        return {
            **self._state(camera, processes, known),
            "losses": known.losses,
            "facts": dict(known.facts),
            "error": next((p.ended[camera][1] for p in processes if camera in p.ended), ""),
            "fps": round(self._rates.get(f"camera {camera}", 0.0), 2),
            "frames": counts["frames", camera],
            "drops": sum(drops.values()),
            "drops_by_reason": drops,
            "skipped_by_reason": _by_reason("skipped.", camera, counts),
            "age_ms": self._age_ms(camera),
            "events": self._incidents.of(camera),
        }

    def _state(self, camera: str, processes: Sequence[Reporting], known: CameraNow) -> dict[str, Any]:
        """State, why, since when. One of whom no frame comes is neither live nor running, whoever says so."""
        ended = next((p.ended[camera] for p in processes if camera in p.ended), None)
        if ended:
            return _as({"end": "done", "stopped": "stopped"}.get(ended[0], "failed"))
        still_s = self._still_s(camera)
        if camera in self._paused:
            return _as("paused")
        if known.state and known.state != "live":
            return _as(known.state, known.why, known.since_s)
        state = known.state or _process_state(camera, processes)
        if camera in self._waiting and state == "running":
            return _as("starting")
        since_s = known.since_s if known.state else None
        if (
            state in ("live", "running")
            and min(still_s, still_s if since_s is None else since_s) > self._still_limit_s[camera]
        ):
            return _as("stalled", f"no frame for {still_s:.0f} s", still_s)
        return _as(state, known.why, since_s)

    def _still_s(self, camera: str) -> float:
        """For how long no frame of the camera has come."""
        _, since = self._last_frame.get(camera, (0, 0.0))
        return time.monotonic() - max(since, self._here_since.get(camera, self._started))

    def _age_ms(self, camera: str) -> float | None:
        """None where it is paused, or where no frame of it has come, or ended, for too long."""
        still = camera in self._paused or self._still_s(camera) > self._still_limit_s[camera]
        return None if still else self._ages.of(camera, time.monotonic(), self._still_limit_s[camera])

    def _still_limit_of(self, camera_settings: Mapping[str, Any]) -> float:
        assert issubclass(self._source, Source)
        return self._source.still_s(self._source.camera_type.model_validate(dict(camera_settings)))

    def _stages(self, processes: Sequence[Reporting]) -> dict[str, Any]:
        stages: dict[str, list[tuple[Reporting, StageBeat]]] = defaultdict(list)
        for process in processes:
            for name, times in process.beat.stages.items():
                stages[name].append((process, times))
        return {name: self._stage(name, rows) for name, rows in stages.items()}

    def _stage(self, name: str, rows: list[tuple[Reporting, StageBeat]]) -> dict[str, Any]:
        times = [row for _, row in rows]
        uptime = max(1e-9, time.monotonic() - self._started)
        return {
            "processes": len(rows),
            "items": sum(t.items for t in times),
            "queue": sum(process.beat.queue for process, _ in rows),
            "batch": _mean([t.batch for t in times]),
            "latency_ms_p50": _mean([t.latency_ms_p50 for t in times]),
            "latency_ms_p99": max((t.latency_ms_p99 for t in times if t.latency_ms_p99 is not None), default=None),
            "fps": round(max(0.0, self._rates.get(f"stage {name}", 0.0)), 2),
            "restarts": sum(process.restarts for process, _ in rows),
            "busy": round(sum(t.busy_ns for t in times) / 1e9 / uptime, 3),
            "held": next((why for process, _ in rows if (why := process.trouble or process.beat.held)), ""),
        }


def _unit(process: Reporting) -> dict[str, Any]:
    beat = process.beat
    return {
        "pid": process.pid,
        "state": process.state,
        "why": process.trouble,
        "restarts": process.restarts,
        "cpu_s": round(beat.cpu_s, 3),
        "custody": beat.custody,
        "slots": beat.slots,
        "drops": _drops(process.counts()),
    }


def _drops(counts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Camera -> reason -> frames that a process has dropped."""
    drops: dict[str, dict[str, int]] = defaultdict(dict)
    for (name, camera), n in counts.items():
        if name.startswith("dropped."):
            drops[camera][name.removeprefix("dropped.")] = n
    return dict(drops)


def read_event(body: bytes) -> dict[str, Any]:
    """The event, with an object in `data` whatever a stage has made of it."""
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        event = {}
    data = event.get("data")
    return {**event, "data": data if isinstance(data, dict) else {}}


def _stage_items(processes: Sequence[Reporting]) -> Counter[str]:
    items: Counter[str] = Counter()
    for process in processes:
        for name, times in process.beat.stages.items():
            items[name] += times.items
    return items


def _as(state: str, why: str = "", since_s: float | None = None) -> dict[str, Any]:
    return {"state": state, "why": why, "since_s": None if since_s is None else round(since_s, 1)}


def _by_reason(kind: str, camera: str, counts: Counter[tuple[str, str]]) -> dict[str, int]:
    """What was counted for the camera as `kind` and a reason."""
    return {name.removeprefix(kind): n for (name, c), n in counts.items() if c == camera and name.startswith(kind)}


def _process_state(camera: str, processes: Sequence[Reporting]) -> str:
    """How the camera's own process is."""
    return next((p.state for p in processes if p.plan.sources and camera in p.plan.cameras), "unknown")


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None


def _memory(pid: int) -> int:
    """What a process has for itself, in bytes."""
    try:
        _, resident, shared, *_ = (Path("/proc") / str(pid) / "statm").read_text().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * PAGESIZE
