"""Starts the processes of a graph, keeps them alive, and ends them.

    opening --all ready--> running --every sink has heard the end of every camera--> closing --> over
                              |  stop: sources end, the rest drains
                              |  failure: the user's mistake, or the machine's, ends the run

A process that dies or hangs is started again, at once the first time, later when it keeps dying; its readers and
senders are told its new address and hand over again what is not done.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import structlog
import zmq

from pipeline.boot import Boot, shm_prefix
from pipeline.control import ControlServer
from pipeline.errors import EXIT_ENVIRONMENT, EXIT_GAVE_UP, EXIT_USER
from pipeline.outcome import Outcome
from pipeline.plan import RunPlan
from pipeline.process import Process
from pipeline.registry import find_stage
from pipeline.run_folder import RunFolder
from pipeline.segments import sweep
from pipeline.status import Meter

_LOOP_MS = 100
_CLOSE_S = 5.0
_HOLD_LIMIT_S = 30.0
_MOST_DEATHS = 8
_FROZEN_S = 2.0
_KEPT_EVENTS = 50


class Supervisor:
    """One run. `tell` is called now and then (about ten times a second) and must return at once."""

    def __init__(self, plan: RunPlan, folder: RunFolder, tell: Callable[[Supervisor], None] | None = None) -> None:
        self.plan = plan
        self.folder = folder
        self.outcome = Outcome()
        self.events: deque[dict[str, Any]] = deque(maxlen=_KEPT_EVENTS)
        self.meter = Meter(plan)
        self._tell = tell
        self._log = structlog.get_logger()
        self._processes = {unit.name: Process(unit, number) for number, unit in enumerate(plan.units)}
        self._poller = zmq.Poller()
        self._control = ControlServer(folder.control, self._answer)
        self._poller.register(self._control.socket, zmq.POLLIN)
        self._finite = all(
            edge.policy == "block"
            for unit in plan.units
            if unit.sources
            for edge in unit.edges
            if edge.sender in unit.sources
        )
        self._running = False
        self._running_since = 0.0
        self._closing_since = 0.0
        self._stop_since = 0.0
        self._last_turn = time.monotonic()
        self._no_hang_before = 0.0
        self._unsent: list[dict[str, Any]] = []
        self._next_look = 0.0

    # ---- from outside; may be called from a signal handler

    def stop(self) -> None:
        """Let the sources end and the rest drain; the second call closes at once."""
        if self._stop_since:
            self._closing_since = self._closing_since or time.monotonic()
        self._stop_since = self._stop_since or time.monotonic()

    @property
    def worked_s(self) -> float:
        """Seconds from when all processes were ready until every sink had heard the end of every camera."""
        return max(0.0, self._closing_since - self._running_since) if self._running_since else 0.0

    @property
    def processes(self) -> Iterable[Process]:
        """The processes of the run."""
        return self._processes.values()

    # ---- the loop

    def run(self) -> Outcome:
        """Run the graph to its end."""
        swept = sweep()
        if swept:
            self._log.info("left_over_memory_removed", files=len(swept))
        try:
            for process in self._processes.values():
                self._start(process)
            while not self._over():
                self._turn()
        finally:
            self._end_all()
            self._control.close()
        return self.outcome

    def _turn(self) -> None:
        ready = dict(self._poller.poll(_LOOP_MS))
        if self._control.socket in ready:
            self._control.serve()
        for process in self._processes.values():
            if process.channel and process.channel.fileno() in ready:
                self._hear(process)
            if process.pidfd in ready:
                self._died(process)
        now = time.monotonic()
        if now - self._last_turn > _FROZEN_S:  # this process itself was stopped: nobody else is to blame
            for process in self._processes.values():
                process.last_beat = max(process.last_beat, now)
            self._no_hang_before = now + self.plan.hang_s
        self._last_turn = now
        self._steer(now)
        if self._tell and now >= self._next_look:
            self._next_look = now + _LOOP_MS / 1000
            self._tell(self)

    def _steer(self, now: float) -> None:
        for process in self._processes.values():
            if process.channel:
                process.channel.flush()
            if process.state == "waiting" and now >= process.start_at and not self._closing_since:
                self._start(process)
            elif process.state in ("starting", "running") and not self._closing_since:
                self._look_for_hang(process, now)
        if self._stop_since and self._running:
            self._send_stop()
        if self._closing_since:
            return
        if self._all_ended() or (self._stop_since and not self._running):
            self._closing_since = now
        elif self._stop_since and now - self._stop_since > self.plan.drain_s:
            self.outcome.add(EXIT_GAVE_UP, f"not all was processed within {self.plan.drain_s:g} s after the stop")
            self._closing_since = now
        else:
            self._look_for_held(now)

    def _over(self) -> bool:
        return bool(self._closing_since)

    # ---- starting and restarting

    def _start(self, process: Process) -> None:
        incarnation = process.incarnation + 1
        unit = process.plan
        boot = Boot(
            unit=unit,
            graph=self.plan.graph,
            run=self.folder.name,
            incarnation=incarnation,
            run_folder=str(self.folder.path),
            endpoint=self.folder.endpoint(process.number, incarnation),
            shm_prefix=shm_prefix(self.folder.name, unit.name, incarnation),
            base_folder=self.plan.base_folder,
            frames_done=process.frames_done,
            gave_up=process.gave_up,
            camera_settings={c: s for c, s in self.plan.camera_settings.items() if unit.sources and c in unit.cameras},
        )
        process.spawn(boot)
        assert process.channel
        for descriptor in (process.channel.fileno(), process.pidfd):
            self._poller.register(descriptor, zmq.POLLIN)

    def _unwatch(self, descriptor: int) -> None:
        if descriptor in self._poller:
            self._poller.unregister(descriptor)

    def _hear(self, process: Process) -> None:
        assert process.channel
        for message in process.channel.receive():
            self._heard(process, message)
        if process.channel and process.channel.closed:
            self._unwatch(process.channel.fileno())

    def _heard(self, process: Process, message: dict[str, Any]) -> None:
        op = message.pop("op")
        if op == "ready":
            self._ready(process, message["endpoint"])
        elif op == "beat":
            process.beat, process.last_beat = message, time.monotonic()
            process.frames_done = {**process.frames_done, **message["frames_done"]}
            if process.counts_now():
                process.fruitless_deaths = 0
            self.meter.note_ages(process.plan, message["ages"])
            process.held_since = (process.held_since or time.monotonic()) if message["held"] else 0.0
        elif op == "ended":
            process.ended[message["camera"]] = (message["reason"], message["error"])
        elif op == "failed":
            process.failure = (message["status"], message["error"])
        elif op == "log":
            values = message["values"]
            getattr(self._log, message["level"], self._log.info)(values.pop("event", "?"), **values)
        elif op == "event":
            self.events.append(self.meter.note_event(message["body"]))

    def _ready(self, process: Process, endpoint: str) -> None:
        process.state, process.endpoint = "running", endpoint
        process.ready_at = process.last_beat = time.monotonic()
        for other in self._processes.values():
            self._link(other)
        self._send_events()
        if not self._running and all(p.state == "running" for p in self._processes.values()):
            self._running = True
            self._running_since = time.monotonic()
            self._log.info("running", processes=len(self._processes), cameras=len(self.plan.camera_settings))
        if self._running:
            for source in self._processes.values():
                if source.plan.sources and source.channel:
                    source.channel.send("start")

    def _link(self, process: Process) -> None:
        """Tell a process where those are that read from it."""
        readers = {reader for routes in process.plan.routes.values() for reader in routes.values()}
        known = {name: self._processes[name].endpoint for name in readers if self._processes[name].endpoint}
        if known and process.channel and process.state == "running":
            process.channel.send("links", endpoints=known)

    # ---- deaths

    def _look_for_hang(self, process: Process, now: float) -> None:
        why = process.hung(now, self.plan.hang_s, self.plan.open_s)
        if why and now >= self._no_hang_before:
            self._log.error("process_hangs", unit=process.plan.name, why=why)
            process.last_beat = now + self.plan.hang_s
            process.kill()

    def _died(self, process: Process) -> None:
        self._hear(process)
        assert process.channel
        self._unwatch(process.pidfd)
        self._unwatch(process.channel.fileno())
        opened = process.state == "running"
        status = process.reap()
        if self._closing_since:
            process.state = "finished"
            return
        if process.plan.sources and set(process.plan.cameras) <= set(process.ended):
            process.state = "finished"  # its cameras have ended, and all that was made of them is done
            return
        delay = process.back_off()
        reason = f"signal {-status}" if status < 0 else f"exit status {status}"
        self._log.warning("process_died", unit=process.plan.name, reason=reason, restart_s=delay)
        self._judge_death(process, reason, opened=opened)

    def _judge_death(self, process: Process, reason: str, *, opened: bool) -> None:
        """Whether the run can go on."""
        name = process.plan.name
        if process.failure and (process.failure[0] == EXIT_USER or not self._running):
            self._fail(*process.failure)
        elif reason.startswith("exit") and not opened and not self._running and process.deaths_in_a_row >= 3:
            self._fail(EXIT_GAVE_UP, f"{name} does not start: {reason}")
        elif self._finite and process.fruitless_deaths >= _MOST_DEATHS:
            self._give_up(process, f"{name} died {process.fruitless_deaths} times in a row, last of {reason}")
        elif process.failure is None or opened:
            self._note_lost(process, reason)

    def _give_up(self, process: Process, why: str) -> None:
        """A source that keeps dying ends its own cameras; any other process is needed by all."""
        if not process.plan.sources or process.gave_up:
            self._fail(EXIT_GAVE_UP, why)
            return
        process.gave_up = why
        process.start_at = time.monotonic()

    def _note_lost(self, process: Process, reason: str) -> None:
        """What a stage that remembers has lost is said: in the log, as an event, in the exit status."""
        for stage in process.plan.stages:
            stage_class = find_stage(stage.use)
            if not getattr(stage_class, "stateful", False):
                continue
            self.outcome.add(EXIT_GAVE_UP, f"{stage.name} lost what it remembered ({reason}) and began anew")
            for camera in process.plan.cameras:
                self._emit(stage.name, camera, process, reason)

    def _emit(self, stage: str, camera: str, process: Process, reason: str) -> None:
        subject = f"{stage}/{camera}/{process.incarnation}"
        event_id = hashlib.sha256(f"{self.folder.name}/{os.getpid()}/{subject}".encode()).hexdigest()[:32]
        body = {
            "specversion": "1.0",
            "id": event_id,
            "source": f"camgraph/{self.plan.graph}",
            "type": "camgraph.stage.restarted",
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "subject": camera,
            "data": {"stage": stage, "camera": camera, "reason": reason, "lost": "state"},
        }
        event = {"sender": stage, "camera": camera, "id": event_id, "incident": event_id, "phase": "single"}
        text = json.dumps(body, separators=(",", ":"))
        self._unsent.append({**event, "time_ns": 0, "body": text.encode()})
        self._send_events()

    def _send_events(self) -> None:
        """Hand the supervisor's own events to the outbox, once it is there."""
        for process in self._processes.values():
            if process.channel and process.state == "running" and any(s.use == "outbox" for s in process.plan.stages):
                for event in self._unsent:
                    process.channel.send("emit", **event)
                self._unsent.clear()

    def _fail(self, status: int, problem: str) -> None:
        self.outcome.add(status, problem)
        self._closing_since = time.monotonic()

    def _look_for_held(self, now: float) -> None:
        """A finite run does not wait for ever for a disk or a receiver."""
        held = [p for p in self._processes.values() if p.held_since and now - p.held_since > _HOLD_LIMIT_S]
        if self._finite and held:
            why = held[0].beat.get("held", "")
            self._fail(EXIT_ENVIRONMENT, f"given up after {_HOLD_LIMIT_S:g} s of waiting: {why}")

    # ---- the end

    def _all_ended(self) -> bool:
        """True when every process that nobody reads from has heard the end of all of its cameras."""
        last = [p for p in self._processes.values() if not p.plan.outgoing]
        return self._running and all(set(p.plan.cameras) <= set(p.ended) for p in last)

    def _send_stop(self) -> None:
        for process in self._processes.values():
            if process.plan.sources and process.channel and not set(process.plan.cameras) <= set(process.ended):
                process.channel.send("stop")

    def _end_all(self) -> None:
        """Close all processes: asked first, and in the end killed."""
        ended = {camera: how for process in self._processes.values() for camera, how in process.ended.items()}
        self.outcome.add_camera_errors(ended, self.plan.camera_settings)
        for limit_s, act in ((_CLOSE_S, _ask), (5.0, Process.kill)):
            alive = [p for p in self._processes.values() if p.pid]
            for process in alive:
                act(process)
            self._wait_for_deaths(limit_s)
        for process in self._processes.values():
            self.outcome.add_losses(process.counts())
        self._running = False

    def _wait_for_deaths(self, limit_s: float) -> None:
        self._closing_since = self._closing_since or time.monotonic()
        until = time.monotonic() + limit_s
        while any(p.pid for p in self._processes.values()) and time.monotonic() < until:
            ready = dict(self._poller.poll(_LOOP_MS))
            for process in self._processes.values():
                if process.channel and process.channel.fileno() in ready:
                    self._hear(process)
                if process.pidfd in ready:
                    self._died(process)

    # ---- looking

    def status(self) -> dict[str, Any]:
        """The state of the run as plain values."""
        status = self.meter.status(list(self._processes.values()), list(self.events))
        return {**status, "worked_s": round(self.worked_s, 3)}

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("op") == "status":
            return self.status()
        if request.get("op") == "stop":
            self.stop()
            return {"ok": True}
        if request.get("op") == "metrics":
            status = self.status()
            return {name: status[name] for name in ("counts", "cameras", "stages", "units", "memory_mb", "uptime_s")}
        return {"error": f"unknown request {request.get('op')!r}; expected status, metrics or stop"}


def _ask(process: Process) -> None:
    if process.channel:
        process.channel.send("close")
