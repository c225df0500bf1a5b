"""Builds the status of a run (`pipeline.monitoring.run_status`) from the reports of its processes."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from camgraph.pipeline.messages import Event
from camgraph.pipeline.monitoring.bottleneck import Limit, limit_of
from camgraph.pipeline.monitoring.camera_states import ERROR_IDS, CameraNow, Fact
from camgraph.pipeline.monitoring.event_format import EventStatus, EventSummary
from camgraph.pipeline.monitoring.health import CameraCondition, Flow, Health, Phase, Plight, Trouble, health_of
from camgraph.pipeline.monitoring.histogram import BOUNDS_S, Histogram
from camgraph.pipeline.monitoring.incidents import Incidents, totals
from camgraph.pipeline.monitoring.load_meter import KEPT_S, LoadMeter, Recent, StageTotals, sums_of
from camgraph.pipeline.monitoring.memory_meter import MemoryMeter
from camgraph.pipeline.monitoring.metrics import reason_line
from camgraph.pipeline.monitoring.reports import Heartbeat, SinkBacklog, StageStats
from camgraph.pipeline.monitoring.run_status import (
    AllDurations,
    BacklogStatus,
    CameraStatus,
    DurationsStatus,
    ProcessStatus,
    RunStatus,
    StageStatus,
)
from camgraph.pipeline.plan import ProcessPlan, RunPlan
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.stage import AWAY, DROPPED, SKIPPED, Source


class Counted(Protocol):
    """A histogram, as a process reports it."""

    @property
    def counts(self) -> Sequence[int]: ...

    @property
    def sum_ns(self) -> int: ...


class Reporting(Protocol):
    """A process, as far as its reports go."""

    @property
    def plan(self) -> ProcessPlan: ...

    @property
    def heartbeat(self) -> Heartbeat: ...

    @property
    def ended(self) -> Mapping[str, tuple[str, str]]:
        """Camera -> (reason, error) of those that have ended."""

    @property
    def trouble(self) -> str:
        """Why it has not opened its stages since its last death, "" if it has."""

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
_NOTE_S = 0.5
_MEMORY_S = 5.0
_MOSTLY = 0.9
_MOST_NAMED = 4
_MOST_EVENTS = 10
_RESTS = frozenset({"paused", "queued", "done", "stopped", "failed"})
_NOT_RUNNING: frozenset[str] = _RESTS | {*AWAY, "waiting", "starting"}
"""In such a state a camera brings no frames now, whatever it brought in the seconds before."""


@dataclass(frozen=True, slots=True)
class _Age:
    age_ms: float
    noted_s: float


class FrameAges:
    """The age of each camera's newest frame when its processing ended, by the process in which it ended.

    A frame's processing ends in a process that sends it to no other (`ProcessPlan.ends_frames`). A graph may have
    several such processes: one with the rules, and one that writes a video. Then the slowest counts. Bounded by the
    cameras of the run and the processes of its graph. Time is an argument.
    """

    def __init__(self) -> None:
        self._ages: dict[str, dict[str, _Age]] = {}

    def note(self, process: str, ages_ms: Mapping[str, float], now_s: float) -> None:
        """Camera -> the age of its newest frame when this process had finished it."""
        for camera, age_ms in ages_ms.items():
            self._ages.setdefault(camera, {})[process] = _Age(age_ms, now_s)

    def of(self, camera: str, now_s: float, longest_s: float) -> float | None:
        """In ms. None if no frame of the camera has ended for ``longest_s``, because an old age means nothing now."""
        fresh = [age.age_ms for age in self._ages.get(camera, {}).values() if now_s - age.noted_s <= longest_s]
        return round(max(fresh), 1) if fresh else None

    def keep(self, cameras: Collection[str]) -> None:
        """Forget all other cameras."""
        for camera in self._ages.keys() - set(cameras):
            del self._ages[camera]


class StatusBuilder:
    """Adds up counts over processes and incarnations, turns them into rates, and builds the status when asked to."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self._started = time.monotonic()
        self._memory_meter = MemoryMeter()
        self._memory_measured = -math.inf, 0.0
        """When, and the result."""
        self._ages = FrameAges()
        self._last_frame: dict[str, tuple[int, float]] = {}
        self._through: dict[str, tuple[float, float]] = {}
        self._troubles: dict[tuple[str, str, str], tuple[float, str]] = {}
        self._load = LoadMeter()
        self._stage_totals = StageTotals()
        self._phase: tuple[Phase, float] = ("starting", self._started)
        self._source = find_stage(plan.source)
        self._here_since: dict[str, float] = {}
        self._still_limit_s: dict[str, float] = {}
        self._paused: Collection[str] = ()
        self._waiting: Collection[str] = ()
        self._incidents = Incidents()
        self._events: deque[EventStatus] = deque(maxlen=_MOST_EVENTS)
        self._recent = Recent()
        self._calls: dict[str, Histogram] = {}
        self._frame_ages: dict[str, Histogram] = {}
        self._rates: dict[str, float] = {}
        """By how much each sum has grown in a second, over `_RATE_S`; `_longer_rates`: over `KEPT_S`."""
        self._longer_rates: dict[str, float] = {}
        self.follow(plan)

    def follow(self, plan: RunPlan) -> None:
        """The run has the cameras of this plan from now on."""
        now, here = time.monotonic(), plan.camera_settings
        self.plan = plan
        self._here_since = {camera: self._here_since.get(camera, now) for camera in here}
        self._still_limit_s = {camera: self._still_limit_of(values) for camera, values in here.items()}
        self._ages.keep(here)
        self._calls = _kept(self._calls, (stage.name for process in plan.processes for stage in process.stages))
        self._frame_ages = _kept(self._frame_ages, here)
        self._last_frame = {camera: last for camera, last in self._last_frame.items() if camera in here}
        self._through = {camera: last for camera, last in self._through.items() if camera in here}
        self._incidents.forget_all_but(here)

    def note_paused(self, paused: Collection[str], waiting: Collection[str] = ()) -> None:
        """The `paused` cameras, and no others, are paused; the sources of the `waiting` cameras may not start yet.

        Call it often: until then, missing frames of these cameras do not count.
        """
        self._paused, self._waiting = frozenset(paused), frozenset(waiting)
        silent = self._here_since.keys() & (self._paused | self._waiting)
        self._here_since.update(dict.fromkeys(silent, time.monotonic()))

    def note_ages(self, process: str, ages_ms: Mapping[str, float]) -> None:
        """Camera -> the age of its newest frame when it ended in this process."""
        now = time.monotonic()
        self._ages.note(process, ages_ms, now)
        self._through.update({camera: (now, age_ms / 1000) for camera, age_ms in ages_ms.items()})

    def note_durations(self, calls: Mapping[str, Counted], frame_ages: Mapping[str, Counted]) -> None:
        """What a process has counted since its last report: calls of its stages, and ages of frames by camera."""
        for known, more in ((self._calls, calls), (self._frame_ages, frame_ages)):
            for name, counted in more.items():
                if name in known:
                    known[name].merge(counted.counts, counted.sum_ns)

    @property
    def phase(self) -> Phase:
        """The phase that the run has entered last."""
        return self._phase[0]

    def enter(self, phase: Phase) -> None:
        """The phase of the run; call it often."""
        if phase != self._phase[0]:
            self._phase = (phase, time.monotonic())

    def measure(
        self, processes: Sequence[Reporting], departed: Mapping[tuple[str, str], int] = MappingProxyType({})
    ) -> None:
        """Note the sums of now. Call it often, even if nobody asks for the status: the rates of the last seconds come
        from these notes.

        `departed`: as for `status`.
        """
        self._note_troubles(processes)
        waiting = {camera for process in processes for camera in process.heartbeat.queued}
        self._here_since.update(dict.fromkeys(self._here_since.keys() & waiting, time.monotonic()))
        if time.monotonic() - self._recent.noted_s >= _NOTE_S:
            self._note(processes, _counts(processes, departed))

    def _note_troubles(self, processes: Sequence[Reporting]) -> None:
        now, before = time.monotonic(), self._troubles
        self._troubles = {
            (process.plan.name, stage, camera): (before.get((process.plan.name, stage, camera), (now, ""))[0], why)
            for process in processes
            for stage, camera, why in process.heartbeat.troubles
        }

    def note_event(self, event: EventSummary) -> None:
        """An event has been committed."""
        self._incidents.note(event)
        self._events.append(event.shown)

    def status(
        self,
        processes: Sequence[Reporting],
        known: Mapping[str, CameraNow] = MappingProxyType({}),
        departed: Mapping[tuple[str, str], int] = MappingProxyType({}),
        plights: Mapping[str, Plight] = MappingProxyType({}),
    ) -> RunStatus:
        """The status of now.

        `known`: camera -> its state from its source's reports. `departed`: the counts of processes that are gone.
        `plights`: process -> why it processes nothing.
        """
        counts = self._measured(processes, departed)
        blocked = _Blocked(processes, plights, self._longer_rates)
        cameras = {
            c: self._camera(c, processes, counts, known.get(c, CameraNow()), blocked) for c in self.plan.camera_settings
        }
        stages = self._stages(processes, plights)
        troubles = self._troubles_of(plights)
        return RunStatus(
            graph=self.plan.graph,
            uptime_s=round(time.monotonic() - self._started, 3),
            phase=self._phase[0],
            health=self._health(cameras, troubles, _halted(processes, plights)),
            troubles=tuple(replace(trouble, since_s=round(trouble.since_s, 1)) for trouble in troubles),
            bottleneck=self._limit(cameras, troubles),
            cameras=cameras,
            stages=stages,
            events=tuple(self._events),
            actions=self._incidents.actions,
            totals=totals(counts, self._incidents),
            durations=self._durations(stages, cameras),
            counts=sorted((name, camera, n) for (name, camera), n in counts.items()),
            files=list(dict.fromkeys(file for p in processes for file in p.heartbeat.files)),
            memory_mb=self._memory_mb(processes),
            processes={p.plan.name: _process(p) for p in processes},
            counters=_counters(processes, self.plan.camera_settings),
            outbox={sink: _backlog(waiting) for p in processes for sink, waiting in p.heartbeat.outbox.items()},
            outbox_folder=_outbox_folder(self.plan),
        )

    def _memory_mb(self, processes: Sequence[Reporting]) -> float:
        """The memory of all processes and of their frames; at most `_MEMORY_S` old."""
        now = time.monotonic()
        if now >= self._memory_measured[0] + _MEMORY_S:
            alive = [process for process in processes if process.pid]
            own = self._memory_meter.measure([process.pid for process in alive], now)
            frames = sum(process.shared_bytes for process in alive)
            self._memory_measured = now, round((own + frames) / 1e6, 1)
        return self._memory_measured[1]

    def _measured(
        self, processes: Sequence[Reporting], departed: Mapping[tuple[str, str], int]
    ) -> Counter[tuple[str, str]]:
        """Measure for a status, and return the counts of now."""
        for process in processes:
            self.note_frames(process)
        counts = _counts(processes, departed)
        self._note_troubles(processes)
        self._note(processes, counts)
        self._rates = self._recent.rates(_RATE_S)
        self._longer_rates = self._recent.rates(KEPT_S)
        return counts

    def note_frames(self, process: Reporting) -> None:
        """Take the counts of frames of a process; call it often, because frames count as arrived at that moment."""
        for (name, camera), count in process.counts().items():
            here = camera in self._here_since
            if name == "frames" and here and self._last_frame.get(camera, (0, 0.0))[0] != count:
                self._last_frame[camera] = (count, time.monotonic())

    def _note(self, processes: Sequence[Reporting], counts: Counter[tuple[str, str]]) -> None:
        now = time.monotonic()
        self._stage_totals.note(processes)
        sums = sums_of(processes, counts, self.plan.camera_settings)
        self._recent.note(now, {**sums, **self._stage_totals.sums})
        if self._phase[0] == "running":
            self._load.note(self._recent)

    def _camera(
        self,
        camera: str,
        processes: Sequence[Reporting],
        counts: Counter[tuple[str, str]],
        known: CameraNow,
        blocked: _Blocked,
    ) -> CameraStatus:
        drops = _by_reason(DROPPED, camera, counts)
        now = self._state(camera, processes, known, blocked)
        fps = 0.0 if now.state in _NOT_RUNNING else self._rates.get(f"camera {camera}", 0.0)
        return CameraStatus(
            state=now.state,
            why=now.why,
            error_id=ERROR_IDS.get(now.state, ""),
            since_s=_rounded(now.since_s),
            losses=known.losses,
            facts=dict(known.facts),
            error=next((p.ended[camera][1] for p in processes if camera in p.ended), ""),
            fps=round(fps, 2),
            frames=counts["frames", camera],
            finished=_finished(camera, processes, counts["frames", camera]),
            through_s=self._through_s(camera),
            drops=sum(drops.values()),
            drops_by_reason=drops,
            skipped_by_reason=_by_reason(SKIPPED, camera, counts),
            age_ms=self._age_ms(camera),
            events=self._incidents.of(camera),
        )

    def _state(self, camera: str, processes: Sequence[Reporting], known: CameraNow, blocked: _Blocked) -> _State:
        """A camera without frames is neither live nor running, whatever its source reports."""
        ended = next((p.ended[camera] for p in processes if camera in p.ended), None)
        if ended:
            return _State({"end": "done", "stopped": "stopped"}.get(ended[0], "failed"))
        still_s = self._still_s(camera)
        if camera in self._paused or any(camera in process.heartbeat.queued for process in processes):
            return _State("paused" if camera in self._paused else "queued")
        if known.state and known.state != "live":
            return _State(known.state, known.why, known.since_s)
        state = known.state or _process_state(camera, processes)
        if camera in self._waiting and state == "running":
            return _State("starting")
        since_s = known.since_s if known.state else None
        if (
            state in ("live", "running")
            and min(still_s, still_s if since_s is None else since_s) > self._still_limit_s[camera]
        ):
            waits_for = "" if camera in self.plan.live_cameras else blocked.why(camera)
            why = waits_for or f"no frame for {still_s:.0f} s"
            return _State("waiting" if waits_for else "stalled", why, still_s)
        return _State(state, known.why, since_s)

    def _still_s(self, camera: str) -> float:
        """How long no frame of the camera has arrived."""
        _, since = self._last_frame.get(camera, (0, 0.0))
        return time.monotonic() - max(since, self._here_since.get(camera, self._started))

    def _age_ms(self, camera: str) -> float | None:
        """None if the camera is paused, or if none of its frames has arrived, or ended, for too long."""
        still = camera in self._paused or self._still_s(camera) > self._still_limit_s[camera]
        return None if still else self._ages.of(camera, time.monotonic(), self._still_limit_s[camera])

    def _through_s(self, camera: str) -> float | None:
        """The time since a frame of it went all the way through the graph; None before the first one."""
        last = self._through.get(camera)
        return round(time.monotonic() - last[0], 1) if last else None

    def _stuck_s(self, camera: str, *, halted: bool) -> float | None:
        """How long no frame has gone through; None while frames do.

        A frame may take as long as the last one did. A graph may leave frames out on purpose; others must go through.
        `halted`: a process on its way does nothing, so none is left out on purpose there, and none is counted as
        dropped.
        """
        ended, age_s = self._through.get(camera, (0.0, 0.0))
        since = max(ended, self._here_since.get(camera, self._started))
        silent_s = time.monotonic() - since
        if silent_s <= self._still_limit_s[camera] + 2 * age_s:
            return None
        frames, drops = (self._longer_rates.get(f"{kind} {camera}", 0.0) for kind in ("camera", "drops"))
        return None if not halted and frames > 0 and drops < _MOSTLY * frames else silent_s

    def _health(
        self, cameras: Mapping[str, CameraStatus], troubles: Sequence[Trouble], halted: Collection[str]
    ) -> Health:
        phase, since = self._phase
        conditions = {
            name: CameraCondition(
                camera.state,
                reason_line(camera.why or camera.error),
                camera.since_s,
                self._stuck_s(name, halted=name in halted),
            )
            for name, camera in cameras.items()
        }
        flow = Flow(sum(camera.fps for camera in cameras.values()), self._dropped())
        plain = [replace(trouble, why=reason_line(trouble.why)) for trouble in troubles]
        return health_of(phase, time.monotonic() - since, conditions, plain, flow)

    def _dropped(self) -> float:
        """The share of the frames of the last seconds that was dropped."""
        grown = self._longer_rates
        frames, drops = (sum(grown.get(f"{kind} {c}", 0.0) for c in self._here_since) for kind in ("camera", "drops"))
        return drops / frames if frames else 0.0

    def _troubles_of(self, plights: Mapping[str, Plight]) -> list[Trouble]:
        """The troubles of processes, then those of stages in processes that work."""
        now = time.monotonic()
        found = list(_together(plights))
        for (_, stage, camera), (since, why) in self._troubles.items():
            found.append(Trouble(stage, f"camera {camera}: {why}" if camera else why, now - since))
        return found

    def _limit(self, cameras: Mapping[str, CameraStatus], troubles: Sequence[Trouble]) -> Limit | None:
        """The present limit of the run, while it works and frames arrive; at its end, the limit of the whole run."""
        if self._phase[0] == "over":
            return limit_of(self._load.whole(self.plan))
        works = self._phase[0] == "running" and not troubles and any(camera.fps for camera in cameras.values())
        return limit_of(self._load.lately(self.plan, self._recent)) if works else None

    def _still_limit_of(self, camera_settings: Mapping[str, Any]) -> float:
        assert issubclass(self._source, Source)
        return self._source.still_s(self._source.camera_type.model_validate(dict(camera_settings)))

    def _stages(self, processes: Sequence[Reporting], plights: Mapping[str, Plight]) -> dict[str, StageStatus]:
        """All stages but sources, also those that have not reported yet."""
        stages: dict[str, list[tuple[Reporting, StageStats]]] = defaultdict(list)
        for process in processes:
            sources = process.plan.sources
            for name in dict.fromkeys(
                [*process.heartbeat.stages, *(s.name for s in process.plan.stages if s.name not in sources)]
            ):
                stages[name].append((process, process.heartbeat.stages.get(name, StageStats())))
        return {name: self._stage(name, rows, plights) for name, rows in stages.items()}

    def _stage(self, name: str, rows: list[tuple[Reporting, StageStats]], plights: Mapping[str, Plight]) -> StageStatus:
        times, total = [row for _, row in rows], self._stage_totals.of(name)
        return StageStatus(
            state=next((p.state for p, _ in rows if p.plan.name in plights and p.state != "running"), "running"),
            processes=len(rows),
            items=total.items,
            queue=sum(process.heartbeat.queue for process, _ in rows),
            batch=_mean([t.batch for t in times]),
            latency_ms_p50=_mean([t.latency_ms_p50 for t in times]),
            latency_ms_p99=max((t.latency_ms_p99 for t in times if t.latency_ms_p99 is not None), default=None),
            fps=round(max(0.0, self._rates.get(f"stage {name}", 0.0)), 2),
            restarts=max(total.restarts, sum(process.restarts for process, _ in rows)),
            busy=round(self._longer_rates.get(f"busy {name}", 0.0), 3),
            blocked_on=next((why for p, _ in rows if (why := p.trouble or p.heartbeat.blocked_on)), ""),
            facts=_together_facts([process.heartbeat.stage_facts.get(name, {}) for process, _ in rows]),
        )

    def _durations(self, stages: Iterable[str], cameras: Iterable[str]) -> AllDurations:
        return AllDurations(BOUNDS_S, _durations(self._calls, stages), _durations(self._frame_ages, cameras))


@dataclass(frozen=True, slots=True)
class _State:
    """The state of a camera, the reason, and its duration if known."""

    state: str
    why: str = ""
    since_s: float | None = None


def _together_facts(each: Iterable[Mapping[str, Fact]]) -> dict[str, Fact]:
    """The facts that the processes of a stage tell; where they differ, all of them (`cuda:0, cuda:1`)."""
    found: dict[str, dict[Fact, None]] = defaultdict(dict)
    for facts in each:
        for name, value in facts.items():
            found[name][value] = None
    return {
        name: next(iter(values)) if len(values) == 1 else ", ".join(map(str, values)) for name, values in found.items()
    }


def _halted(processes: Iterable[Reporting], plights: Collection[str]) -> frozenset[str]:
    """The cameras whose frames go through a process that processes nothing."""
    plans = (process.plan for process in processes if process.plan.name in plights)
    return frozenset(
        camera for plan in plans if any(e.type != Event.TYPE for e in plan.incoming) for camera in plan.seen_cameras
    )


def _backlog(waiting: SinkBacklog) -> BacklogStatus:
    return BacklogStatus(waiting.waiting, _rounded(waiting.oldest_s), waiting.dead_letters, waiting.given_up)


def _outbox_folder(plan: RunPlan) -> str:
    """Where the run keeps its outbox, "" if it has none."""
    stages = (stage for process in plan.processes for stage in process.stages)
    return next((str(Path(str(stage.settings["path"])).parent) for stage in stages if stage.use == "outbox"), "")


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _counters(processes: Sequence[Reporting], here: Collection[str]) -> dict[str, dict[str, dict[str, int]]]:
    """Camera -> counter -> name -> number, of the cameras that have counters."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for process in processes:
        for camera, counters in process.heartbeat.counters.items():
            found.setdefault(camera, {}).update(counters)
    return {camera: dict(sorted(found[camera].items())) for camera in here if camera in found}


class _Blocked:
    """Why a source may not bring its next frame: the graph behind it is full."""

    def __init__(
        self, processes: Sequence[Reporting], plights: Mapping[str, Plight], rates: Mapping[str, float]
    ) -> None:
        self._processes = processes
        self._plights = plights
        self._rates = rates

    def why(self, camera: str) -> str:
        """The stage or process that blocks the camera, "" if the source itself brings nothing."""
        source = next((p for p in self._processes if p.plan.sources and camera in p.plan.cameras), None)
        if source is None:
            return ""
        last = source.heartbeat
        if last.source_silent_since_ns or not (last.in_flight or last.blocked_on):
            return ""
        for name, plight in self._plights.items():
            return f"waits for {name}, which {plight.why}"
        for process in self._processes:
            for stage, _, why in process.heartbeat.troubles:
                return f"waits for {stage}: {why}"
        busy = {name: rate for name, rate in self._rates.items() if name.startswith("busy ")}
        slowest = max(busy, key=lambda name: busy[name], default="")
        return f"waits for {slowest.removeprefix('busy ')}" if slowest else "waits for the stages behind it"


def _process(process: Reporting) -> ProcessStatus:
    heartbeat = process.heartbeat
    return ProcessStatus(
        pid=process.pid,
        state=process.state,
        why=process.trouble,
        restarts=process.restarts,
        cpu_s=round(heartbeat.cpu_s, 3),
        in_flight=heartbeat.in_flight,
        slots=heartbeat.slots,
        drops=_drops(process.counts()),
    )


def _drops(counts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Camera -> reason -> frames that a process has dropped."""
    drops: dict[str, dict[str, int]] = defaultdict(dict)
    for (name, camera), n in counts.items():
        if name.startswith(DROPPED):
            drops[camera][name.removeprefix(DROPPED)] = n
    return dict(drops)


def _together(plights: Mapping[str, Plight]) -> Iterator[Trouble]:
    """Join processes with the same plight into one trouble, such as that of the whole run at its start."""
    alike: dict[str, list[str]] = defaultdict(list)
    for process, plight in plights.items():
        alike[plight.why].append(process)
    for why, processes in alike.items():
        more = f" and {len(processes) - _MOST_NAMED} more" if len(processes) > _MOST_NAMED else ""
        since_s = max(plights[process].since_s for process in processes)
        yield Trouble(", ".join(processes[:_MOST_NAMED]) + more, why, since_s)


def _counts(processes: Sequence[Reporting], departed: Mapping[tuple[str, str], int]) -> Counter[tuple[str, str]]:
    """(name, camera) -> the number that all processes have counted, those that are gone included."""
    counts: Counter[tuple[str, str]] = Counter()
    for process in processes:
        counts.update(process.counts())
    counts.update(departed)
    return +counts


def _kept(known: Mapping[str, Histogram], names: Iterable[str]) -> dict[str, Histogram]:
    """The known histograms of these names, and an empty one for each new name."""
    return {name: known.get(name) or Histogram() for name in names}


def _durations(histograms: Mapping[str, Histogram], names: Iterable[str]) -> dict[str, DurationsStatus]:
    found = ((name, histograms[name]) for name in names if name in histograms)
    return {name: DurationsStatus(one.counts, one.sum_ns / 1e9) for name, one in found}


def _finished(camera: str, processes: Sequence[Reporting], frames: int) -> int:
    """How many frames of a file have been judged; with `processes: one` all that were read."""
    done = [process.heartbeat.frames_done[camera] for process in processes if camera in process.heartbeat.frames_done]
    if not done and any(process.plan.sources and camera in process.plan.cameras for process in processes):
        return frames if len(processes) == 1 else 0
    return min([frames, *(stamp.seq + 1 for stamp in done)])


def _by_reason(kind: str, camera: str, counts: Counter[tuple[str, str]]) -> dict[str, int]:
    """The counts of the camera of `kind`, by reason."""
    return {name.removeprefix(kind): n for (name, c), n in counts.items() if c == camera and name.startswith(kind)}


def _process_state(camera: str, processes: Sequence[Reporting]) -> str:
    """The state of the camera's own process."""
    return next((p.state for p in processes if p.plan.sources and camera in p.plan.cameras), "unknown")


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None
