"""One process of a graph: its loop, which takes messages, runs the stages, sends, acknowledges, and reports its state.

`pipeline.worker.child` starts it, `pipeline.supervision.supervisor` gives it orders. `pipeline.transport.receiver` and
`pipeline.transport.sender` hold the traffic between processes, `pipeline.worker.input_loop` and
`pipeline.worker.sources` its ways in here, `pipeline.execution.stage_chain` the way of an item through the stages.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import zmq

from camgraph.pipeline.boot import Boot
from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem
from camgraph.pipeline.execution.builder import Builder
from camgraph.pipeline.execution.context import Collector, Pulse
from camgraph.pipeline.execution.emissions import Emissions
from camgraph.pipeline.execution.retry import Closing, Retry
from camgraph.pipeline.execution.source_thread import SourceThread
from camgraph.pipeline.execution.stage_chain import StageChain
from camgraph.pipeline.items import Item
from camgraph.pipeline.messages import End, Event, Stamp
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.plan import slots_of
from camgraph.pipeline.shm.segments import require_ordered_stores
from camgraph.pipeline.shm.slots import SlotRing
from camgraph.pipeline.stage import Logger, Source
from camgraph.pipeline.system.confidential import forbid_dumps
from camgraph.pipeline.system.redaction import hide
from camgraph.pipeline.transport.channel import Channel
from camgraph.pipeline.transport.receiver import Receiver
from camgraph.pipeline.transport.sender import Sender
from camgraph.pipeline.transport.wire import allocate
from camgraph.pipeline.worker.emitter import Emitter
from camgraph.pipeline.worker.heartbeats import Heartbeats
from camgraph.pipeline.worker.input_loop import InputLoop
from camgraph.pipeline.worker.outbox_relay import OutboxRelay
from camgraph.pipeline.worker.sources import Sources

_IDLE_MS = 200
_JOIN_S = 1.0


class Worker:
    """The loop. All of its methods run in one thread, but for `_pause`, which waits in whichever calls it.

    `orders`: those that arrived before there was a worker.
    """

    def __init__(self, boot: Boot, channel: Channel, log: Logger, orders: Sequence[Mapping[str, Any]] = ()) -> None:
        require_ordered_stores()
        self._boot = boot
        self._plan = boot.plan
        self._channel = channel
        self._log = log
        self._counters = Counters()
        self._poller = zmq.Poller()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._ring = SlotRing(boot.shm_prefix, slots_of(self._plan))
        self._collector = Collector(self._ring.release)
        self._retry = Retry(self._pause, self._collector, log)
        self._emissions = Emissions(self._send_emitted)
        built = self._builder(boot).build()
        self._chain, self._close_tracer = built.chain, built.close_tracer
        self._receiver = self._make_receiver()
        self._sender = Sender(
            process=self._plan.name,
            incarnation=boot.incarnation,
            edges=self._plan.outgoing,
            routes=self._plan.routes,
            ring=self._ring,
            counters=self._counters,
            poller=self._poller,
            log=log,
        )
        self._emitter = Emitter(self._sender, self._counters, self._retry, log)
        self._sources = self._make_sources(built.sources)
        self._input_loop = self._make_input_loop(self._receiver) if self._receiver else None
        self._relay = self._make_relay(built.outbox) if built.outbox else None
        self._heartbeats = Heartbeats(
            channel,
            hang_s=boot.hang_s,
            chain=self._chain,
            counters=self._counters,
            ring=self._ring,
            retry=self._retry,
            sender=self._sender,
            sources=self._sources,
            receiver=self._receiver,
            input_loop=self._input_loop,
            relay=self._relay,
        )
        self._closing = threading.Event()
        self._thread = threading.get_ident()
        self._order: set[str] = set()
        self._early = orders

    # ---- building

    def _builder(self, boot: Boot) -> Builder:
        return Builder(
            boot,
            counters=self._counters,
            log=self._log,
            collector=self._collector,
            retry=self._retry,
            allocate=partial(allocate, self._ring),
            report_opening=lambda doing, within_s: self._channel.send("opening", doing=doing, within_s=within_s),
            emissions=self._emissions,
        )

    def _send_emitted(self, stage: str, event: Event) -> None:
        fields = {"id": event.id, "incident": event.incident, "phase": event.phase, "body": event.body}
        stamp = event.stamp
        self._channel.send("emit", stage=stage, camera=stamp.camera, time_ns=stamp.time_ns, **fields)

    def _make_receiver(self) -> Receiver | None:
        if not self._plan.incoming:
            return None
        accepted = {edge.name: self._boot.accepted(edge) for edge in self._plan.incoming}
        successor = self._boot.incarnation > 1
        receiver = Receiver(self._boot.endpoint, self._plan, accepted, self._counters, self._log, successor=successor)
        self._poller.register(receiver.socket, zmq.POLLIN)
        return receiver

    def _make_sources(self, sources: list[tuple[Source[Any], Pulse]]) -> Sources:
        return Sources(
            [self._source_thread(source, pulse) for source, pulse in sources],
            chain=self._chain,
            emitter=self._emitter,
            collector=self._collector,
            counters=self._counters,
            on_end=self._camera_ended,
        )

    def _source_thread(self, source: Source[Any], pulse: Pulse) -> SourceThread:
        return SourceThread(
            source,
            pulse,
            self._collector,
            window=self._boot.plan.window,
            live=source.is_live(source.camera_settings),
            wake=self._wake,
            traced=self._boot.tracing is not None,
        )

    def _new_source(self, boot: Boot, camera: str) -> SourceThread:
        return self._source_thread(*self._builder(boot).source(camera))

    def _make_input_loop(self, receiver: Receiver) -> InputLoop:
        return InputLoop(
            self._chain,
            receiver,
            self._sender,
            self._emitter,
            collector=self._collector,
            counters=self._counters,
            wake=self._wake,
            on_end=self._camera_ended,
            log=self._log,
        )

    def _make_relay(self, outbox: Outbox) -> OutboxRelay:
        return OutboxRelay(
            outbox,
            plan=self._plan,
            incarnation=self._boot.incarnation,
            sender=self._sender,
            channel=self._channel,
            log=self._log,
        )

    def _wake(self) -> None:
        os.eventfd_write(self._wake_fd, 1)

    # ---- the loop

    def run(self) -> None:
        """Open the stages, then work until the order to close. Raises the error that ends the process."""
        self._poller.register(self._channel.fileno(), zmq.POLLIN)
        self._poller.register(self._wake_fd, zmq.POLLIN)
        failures: list[CamgraphError] = []
        try:
            self._chain.open()
            self._heartbeats.begin()
            self._channel.send("ready", endpoint=self._boot.endpoint if self._receiver else "")
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
        if self._wake_fd in ready:
            os.eventfd_read(self._wake_fd)
        if self._channel.fileno() in ready:
            self._obey(self._channel.receive())
        more = self._receiver.receive() if self._receiver and self._receiver.socket in ready else False
        return self._sender.receive(ready) or more

    def _idle_ms(self) -> int:
        return (self._input_loop.wait_ms() if self._input_loop else 0) or _IDLE_MS

    def _turn(self) -> bool:
        """One round of everything; True when there is more to do without anything happening."""
        if self._plan.sources:
            if self._sender.attached:
                self._sources.start(self._resume_of, self._sender.seen_by_any, self._boot.gave_up)
            self._sources.take()
        busy = self._input_loop.turn() if self._input_loop else False
        self._send()
        return busy

    def _send(self) -> None:
        """Send others the things they wait for: events, acknowledgements, and the heartbeat."""
        if self._relay:
            self._relay.turn()
        self._sender.flush()
        if self._receiver:
            self._receiver.flush()
        if self._plan.sources and self._plan.live:  # a file keeps its memory: without it, it would end
            self._ring.tend(time.monotonic())
        self._heartbeats.send_in_time()

    def _pause(self, seconds: float) -> bool:
        """Let so much time pass while a stage is blocked; True when the process closes.

        In the loop's own thread the loop goes on meanwhile, as far as it takes nothing new.
        """
        if threading.get_ident() != self._thread:
            over = self._closing.wait(seconds)
            assert self._input_loop
            self._input_loop.begin_again()
            return over
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0 and not self._is_over():
            self._receive(min(_IDLE_MS, math.ceil(1000 * left_s)))
            self._send()
        return self._is_over()

    def _obey(self, messages: Iterable[Mapping[str, Any]]) -> None:
        for message in messages:
            if message["op"] == "links":
                self._sender.connect(message["endpoints"])
            elif message["op"] == "start":
                self._sources.allow(message["cameras"])
            elif message["op"] == "stop":
                self._sources.stop()
            elif message["op"] == "emit":
                assert self._relay
                self._relay.emit(message)
            elif message["op"] == "committed":
                self._emissions.committed(message["id"])
            elif message["op"] == "revise":
                self._revise(Boot.from_wire(message["boot"]), message["number"])
            elif message["op"] == "settings":
                self._change_settings(Boot.from_wire(message["boot"]), message["number"])
            elif message["op"] in ("switches", "cameras_now"):
                self._tell_stages(message)
            elif message["op"] == "remove":
                self._sources.remove(message["camera"])
            elif message["op"] == "pause":
                self._sources.pause(message["cameras"])
            else:
                self._order.add(message["op"])

    def _tell_stages(self, message: Mapping[str, Any]) -> None:
        if message["op"] == "cameras_now":
            self._chain.tell_cameras_now(message["states"])
        else:
            self._chain.turn_switches(message["switches"])
            self._chain.reset_counters(message["resets"])

    def _revise(self, boot: Boot, number: int) -> None:
        hide(boot.secrets)
        if boot.confidential:
            forbid_dumps(self._log.warning)
        ways = (self._chain, self._receiver, self._sender)
        problem = revise(boot, *ways, ring=self._ring, sources=self._sources, new_source=self._new_source)
        if not problem:
            self._boot = boot
        self._channel.send("revised", number=number, problem=problem)

    def _change_settings(self, boot: Boot, number: int) -> None:
        """Go on with the settings of this plan; if a stage does not take them, close: the next process has them."""
        hide(boot.secrets)
        if boot.confidential:
            forbid_dumps(self._log.warning)
        try:
            self._chain.change_settings(boot.plan)
        except Exception as error:  # noqa: BLE001 - a bug of a stage, or its way to be started anew
            is_bug = not isinstance(error, CamgraphError)
            self._log.warning("settings_not_taken", why=f"{type(error).__name__}: {error}", exc_info=is_bug)
            self._order.add("close")
            return
        self._boot = boot
        self._channel.send("settings_taken", number=number)

    def _resume_of(self, camera: str) -> Stamp | None:
        """The frame to go on behind: the readers are done with it, or an earlier incarnation knew it to be done."""
        known = [stamp for stamp in (self._sender.done_by_all(camera), self._boot.resume_of(camera)) if stamp]
        return max(known, key=lambda stamp: stamp.place, default=None)

    def _camera_ended(self, item: Item) -> None:
        end = item.payload
        assert isinstance(end, End)
        error = {"error": end.error, "status": end.status, "error_id": end.error_id}
        self._channel.send("ended", camera=item.camera, reason=end.reason, **error)

    def _close(self) -> list[CamgraphError]:
        """Close everything; returns the errors of stages that failed to close."""
        self._closing.set()
        self._sources.abandon()
        failures: list[CamgraphError] = []
        if self._input_loop is None or self._input_loop.close(_JOIN_S):
            failures = self._chain.close()
        else:
            self._log.warning("stage_not_closed", why="it is still at work")
        self._close_tracer()
        self._sender.close()
        if self._receiver:
            self._receiver.close()
        self._sources.join(_JOIN_S)
        self._ring.close()
        self._heartbeats.send()
        return failures


def revise(
    boot: Boot,
    chain: StageChain,
    receiver: Receiver | None,
    sender: Sender,
    *,
    ring: SlotRing,
    sources: Sources,
    new_source: Callable[[Boot, str], SourceThread],
) -> str:
    """Change a process to a plan with other cameras; returns why it cannot have it, if it has no memory or no time for
    it.

    Cameras that stay are not touched. Those that are gone have ended before, and all of theirs is done everywhere: they
    are forgotten. `new_source(boot, camera)` makes the source of a camera, which waits for the order to start.
    """
    before, plan = chain.plan, boot.plan
    coming = [camera for camera in plan.cameras if camera not in before.cameras]
    outboxes = [runner.stage for runner in chain.runners.values() if isinstance(runner.stage, Outbox)]
    if coming and any(outbox.all_ended for outbox in outboxes):
        return "the run is at its end"
    try:
        ring.resize(slots_of(plan))
    except EnvironmentProblem as problem:
        return str(problem)
    sender.revise(plan.routes)
    if receiver:
        receiver.revise(plan)
    chain.revise(plan)
    for outbox in outboxes:
        outbox.expects_more = plan.expects_more
    sources.keep_only(plan.cameras)
    for camera in coming if plan.sources else ():
        sources.add(new_source(boot, camera))
    return ""
