"""One process of a graph: its loop, which takes messages, runs the stages, sends, acknowledges, and reports its state.

`pipeline.worker.child` starts a worker, and `pipeline.supervision.supervisor` gives orders to the worker.
`pipeline.transport.receiver` and `pipeline.transport.sender` carry messages between processes.
`pipeline.worker.input_loop` and `pipeline.worker.sources` bring messages and frames to the stages, and
`pipeline.execution.stage_chain` takes each item through the stages.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import zmq

from camgraph.pipeline.boot import Boot
from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.execution.builder import Builder, Built
from camgraph.pipeline.execution.collector import Collector
from camgraph.pipeline.execution.context import Pulse
from camgraph.pipeline.execution.emissions import Emissions
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.retry import Closing, Retry
from camgraph.pipeline.execution.source_thread import SourceThread
from camgraph.pipeline.items import Item
from camgraph.pipeline.messages import End, Event, Stamp
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import slots_of
from camgraph.pipeline.shm.segments import require_ordered_stores
from camgraph.pipeline.shm.slots import SlotRing
from camgraph.pipeline.stage import Logger, Source
from camgraph.pipeline.system.confidential import forbid_dumps
from camgraph.pipeline.system.redaction import hide
from camgraph.pipeline.system.wakeup import Wakeup
from camgraph.pipeline.transport.channel import Channel
from camgraph.pipeline.transport.receiver import Receiver
from camgraph.pipeline.transport.sender import Sender
from camgraph.pipeline.transport.wire import allocate
from camgraph.pipeline.worker.emitter import Emitter
from camgraph.pipeline.worker.heartbeats import Heartbeats
from camgraph.pipeline.worker.input_loop import InputLoop
from camgraph.pipeline.worker.message_path import MessagePath
from camgraph.pipeline.worker.outbox_relay import OutboxRelay
from camgraph.pipeline.worker.sources import Sources

_IDLE_MS = 200
_REST_MS = 500
_TURNS_UNTIL_REST = 2
"""After this many waits in which nothing arrived, all news has been reported, and the process is at rest."""
_JOIN_S = 1.0


class Worker:
    """The loop of a process. All methods run in one thread, except `_pause`, which waits in the thread of its caller.

    `orders`: the supervisor's orders that arrived before the worker was made.
    """

    def __init__(self, boot: Boot, channel: Channel, log: Logger, orders: Sequence[Mapping[str, Any]] = ()) -> None:
        require_ordered_stores()
        self._boot = boot
        self._plan = boot.plan
        self._channel = channel
        self._log = log
        self._poller = zmq.Poller()
        self._wakeup = Wakeup()
        self._ring = SlotRing(boot.shm_prefix, slots_of(self._plan))
        self._parts = self._make_parts()
        built = Builder(boot, self._parts).build()
        self._close_tracer = built.close_tracer
        self._path = self._make_path(built)
        self._heartbeats = Heartbeats(self._path, channel, self._parts, hang_s=boot.hang_s)
        self._closing = threading.Event()
        self._thread = threading.get_ident()
        self._order: set[str] = set()
        self._empty_waits = 0
        """The number of waits in a row that ended with nothing to receive."""
        self._early = orders

    # ---- building

    def _make_parts(self) -> ProcessParts:
        collector = Collector(self._ring.release)
        return ProcessParts(
            incarnation=self._boot.incarnation,
            log=self._log,
            counters=Counters(),
            collector=collector,
            retry=Retry(self._pause, collector, self._log),
            emissions=Emissions(self._send_emitted),
            wake=self._wakeup.wake,
            allocate=partial(allocate, self._ring),
            report_opening=lambda doing, within_s: self._channel.send("opening", doing=doing, within_s=within_s),
        )

    def _send_emitted(self, stage: str, event: Event) -> None:
        fields = {"id": event.id, "incident": event.incident, "phase": event.phase, "body": event.body}
        stamp = event.stamp
        self._channel.send("emit", stage=stage, camera=stamp.camera, time_ns=stamp.time_ns, **fields)

    def _make_path(self, built: Built) -> MessagePath:
        plan, parts, chain = self._plan, self._parts, built.chain
        receiver = self._make_receiver()
        sender = Sender(plan, self._ring, self._poller, parts)
        emitter, ended = Emitter(sender, parts), self._camera_ended
        sources = [self._source_thread(*source) for source in built.sources]
        return MessagePath(
            sources=Sources(sources, chain=chain, emitter=emitter, parts=parts, on_end=ended),
            receiver=receiver,
            input_loop=InputLoop(chain, receiver, sender, emitter, parts, on_end=ended) if receiver else None,
            chain=chain,
            sender=sender,
            ring=self._ring,
            relay=OutboxRelay(built.outbox, plan, sender, self._channel, parts) if built.outbox else None,
        )

    def _make_receiver(self) -> Receiver | None:
        if not self._plan.incoming:
            return None
        accepted = {edge.name: self._boot.accepted(edge) for edge in self._plan.incoming}
        receiver = Receiver(self._boot.endpoint, self._plan, accepted, self._parts)
        self._poller.register(receiver.socket, zmq.POLLIN)
        return receiver

    def _source_thread(self, source: Source[Any], pulse: Pulse) -> SourceThread:
        traced = self._boot.tracing is not None
        return SourceThread(source, pulse, self._parts, window=self._boot.plan.window, traced=traced)

    def _new_source(self, boot: Boot, camera: str) -> SourceThread:
        return self._source_thread(*Builder(boot, self._parts).source(camera))

    # ---- the loop

    def run(self) -> None:
        """Open the stages, then work until the supervisor's order to close. Raises the error that ends the process."""
        self._poller.register(self._channel.fileno(), zmq.POLLIN)
        self._poller.register(self._wakeup.fileno(), zmq.POLLIN)
        failures: list[CamgraphError] = []
        try:
            self._path.chain.open()
            self._heartbeats.begin()
            self._channel.send("ready", endpoint=self._boot.endpoint if self._path.receiver else "")
            self._obey(self._early)
            self._loop()
        finally:
            failures = self._close()
        for failure in failures:
            raise failure

    def _loop(self) -> None:
        busy = True
        try:
            while not self._is_over():
                more = self._receive(0 if busy else self._idle_ms())
                busy = self._turn() or more
        except Closing as closing:
            self._log.warning("closed_while_blocked", error=str(closing))

    def _is_over(self) -> bool:
        return "close" in self._order or self._channel.closed

    def _receive(self, timeout_ms: int) -> bool:
        """Wait for the next messages and receive them; True if there are more to receive."""
        ready = dict(self._poller.poll(timeout_ms))
        self._empty_waits = 0 if ready or not timeout_ms else self._empty_waits + 1
        if self._wakeup.fileno() in ready:
            self._wakeup.clear()
        if self._channel.fileno() in ready:
            self._obey(self._channel.receive())
        more = self._path.receiver.receive() if self._path.receiver and self._path.receiver.socket in ready else False
        return self._path.sender.receive(ready) or more

    def _idle_ms(self) -> int:
        usual_ms = min(_REST_MS, self._heartbeats.longest_wait_ms) if self._is_at_rest else _IDLE_MS
        return (self._path.input_loop.wait_ms() if self._path.input_loop else 0) or usual_ms

    @property
    def _is_at_rest(self) -> bool:
        """Whether the process only waits for messages. A process with a source or an outbox is never at rest."""
        acts_by_itself = self._plan.sources or self._path.relay
        return self._empty_waits >= _TURNS_UNTIL_REST and not acts_by_itself

    def _turn(self) -> bool:
        """One round of the loop; True if the next round has work even if nothing arrives."""
        if self._plan.sources:
            if self._path.sender.attached:
                self._path.sources.start(self._resume_of, self._path.sender.seen_by_any, self._boot.gave_up)
            self._path.sources.take()
        busy = self._path.input_loop.turn() if self._path.input_loop else False
        self._send()
        return busy

    def _send(self) -> None:
        """Send what other processes wait for: events, messages, acknowledgements, and the heartbeat."""
        if self._path.relay:
            self._path.relay.turn()
        self._path.sender.flush()
        if self._path.receiver:
            self._path.receiver.flush()
        if self._plan.sources and self._plan.live:  # a source of files would end without its memory
            self._ring.trim(time.monotonic())
        self._heartbeats.send_in_time(at_rest=self._is_at_rest)

    def _pause(self, seconds: float) -> bool:
        """Wait for `seconds` because a stage is blocked; True if the process closes.

        In the thread of the loop, the loop still receives and sends meanwhile, but begins no new work.
        """
        if threading.get_ident() != self._thread:
            over = self._closing.wait(seconds)
            assert self._path.input_loop
            self._path.input_loop.begin_again()
            return over
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0 and not self._is_over():
            self._receive(min(_IDLE_MS, math.ceil(1000 * left_s)))
            self._send()
        return self._is_over()

    def _obey(self, messages: Iterable[Mapping[str, Any]]) -> None:
        for message in messages:
            if message["op"] == "links":
                self._path.sender.connect(message["endpoints"])
            elif message["op"] == "start":
                self._path.sources.allow(message["cameras"])
            elif message["op"] == "stop":
                self._path.sources.stop()
            elif message["op"] == "emit":
                assert self._path.relay
                self._path.relay.emit(message)
            elif message["op"] == "committed":
                self._parts.emissions.committed(message["id"])
            elif message["op"] == "revise":
                self._revise(Boot.from_wire(message["boot"]), message["number"])
            elif message["op"] == "settings":
                self._change_settings(Boot.from_wire(message["boot"]), message["number"])
            elif message["op"] in ("switches", "cameras_now"):
                self._tell_stages(message)
            elif message["op"] == "remove":
                self._path.sources.remove(message["camera"])
            elif message["op"] == "pause":
                self._path.sources.pause(message["cameras"])
            else:
                self._order.add(message["op"])

    def _tell_stages(self, message: Mapping[str, Any]) -> None:
        if message["op"] == "cameras_now":
            self._path.chain.tell_cameras_now(message["states"])
        else:
            self._path.chain.turn_switches(message["switches"])
            self._path.chain.reset_counters(message["resets"])

    def _revise(self, boot: Boot, number: int) -> None:
        hide(boot.secrets)
        if boot.confidential:
            forbid_dumps(self._log.warning)
        problem = self._path.revise(boot, self._new_source)
        if not problem:
            self._boot = boot
        self._channel.send("revised", number=number, problem=problem)

    def _change_settings(self, boot: Boot, number: int) -> None:
        """Give the stages the settings of this plan. If a stage refuses, close: the next process begins with them."""
        hide(boot.secrets)
        if boot.confidential:
            forbid_dumps(self._log.warning)
        try:
            self._path.chain.change_settings(boot.plan)
        except Exception as error:  # noqa: BLE001 - a bug of a stage, or a stage that has to begin anew
            is_bug = not isinstance(error, CamgraphError)
            self._log.warning("settings_not_taken", why=f"{type(error).__name__}: {error}", exc_info=is_bug)
            self._order.add("close")
            return
        self._boot = boot
        self._channel.send("settings_taken", number=number)

    def _resume_of(self, camera: str) -> Stamp | None:
        """The frame after which the source goes on: the last that all readers, or an earlier life, know as done."""
        known = [stamp for stamp in (self._path.sender.done_by_all(camera), self._boot.resume_of(camera)) if stamp]
        return max(known, key=lambda stamp: stamp.place, default=None)

    def _camera_ended(self, item: Item) -> None:
        end = item.payload
        assert isinstance(end, End)
        error = {"error": end.error, "status": end.status, "error_id": end.error_id}
        self._channel.send("ended", camera=item.camera, reason=end.reason, **error)

    def _close(self) -> list[CamgraphError]:
        """Close all parts of the process; return the errors of stages that failed to close."""
        self._closing.set()
        self._path.sources.abandon()
        failures: list[CamgraphError] = []
        if self._path.input_loop is None or self._path.input_loop.close(_JOIN_S):
            failures = self._path.chain.close()
        else:
            self._log.warning("stage_not_closed", why="it is still at work")
        self._close_tracer()
        self._path.sender.close()
        if self._path.receiver:
            self._path.receiver.close()
        self._path.sources.join(_JOIN_S)
        self._ring.close()
        self._heartbeats.send()
        return failures
