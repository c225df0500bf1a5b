"""A slot ring under stress: `python -m camgraph.tools.lab.proofs.prove ring [--frames 2000000]`.

One owner writes frames as fast as it can; every word of a frame is its number. Three readers check every word: a quick
one, one that sleeps in the middle of a frame for longer than the owner waits for it, and one that is killed while it
holds frames, and started again. The owner takes slots back from readers that are late, so frames do change under a
reader: each such frame must be noticed by its generation (`noticed`), and none may be accepted (`torn`). In the end all
slots must be free.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import zmq

from camgraph.pipeline.errors import BadItem, WireError
from camgraph.pipeline.shm.mappings import Mappings
from camgraph.pipeline.shm.segments import Descriptor
from camgraph.pipeline.shm.slots import Slot, SlotRing
from camgraph.pipeline.transport.wire import pack, unpack

_WORDS = 512
_LEASE_S = 0.02
_SLOTS = 128
_SLEEP_EVERY = 1000
_KILLS = 10
_KINDS = ("quick", "slow", "killed")


def _read(mappings: Mappings, descriptor: Descriptor, nap_s: float) -> tuple[str, int]:
    """Read a frame as a stage would: (`good`, `noticed` or `torn`, its number)."""
    try:
        mapping = mappings.get(descriptor.segment)
    except WireError:
        return "noticed", 0
    if not mapping.holds(descriptor.slot, descriptor.generation):
        return "noticed", 0
    words = mapping.bytes(descriptor.slot).view(np.uint64)[:_WORDS]
    first = int(words[0])
    if nap_s:
        time.sleep(nap_s)
    same = bool((words == first).all())
    if not mapping.holds(descriptor.slot, descriptor.generation):
        return "noticed", 0
    return ("good" if same else "torn"), first


def read_for_ever(folder: str, kind: str) -> None:
    """A reader process: reads until it gets the order to end, then reports its counts."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    frames: zmq.Socket[bytes] = context.socket(zmq.PULL)
    frames.bind(f"ipc://{folder}/{kind}.{os.getpid()}")
    signals: zmq.Socket[bytes] = context.socket(zmq.PUSH)
    signals.connect(f"ipc://{folder}/owner")
    signals.send(pack(["hello", kind, os.getpid()]))
    mappings, seen = Mappings(), dict.fromkeys(("good", "noticed", "torn"), 0)
    count = 0
    while (message := unpack(frames.recv())) is not None:
        count += 1
        nap = 3 * _LEASE_S if kind == "slow" and count % _SLEEP_EVERY == 0 else 0.0
        verdict, _ = _read(mappings, Descriptor(*message[1]), nap)
        seen[verdict] += 1
        signals.send(pack(["free", kind, message[0]]))
    signals.send(pack(["seen", kind, seen]))
    frames.close(0)
    signals.close(2000)
    context.term()


class _Owner:
    """Writes, takes back, and starts the readers."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.ring = SlotRing(f"camgraph-{os.getuid()}-stress{os.getpid()}", _SLOTS)
        self.signals: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PULL)
        self.signals.bind(f"ipc://{folder}/owner")
        self.sockets: dict[str, zmq.Socket[bytes]] = {}
        self.readers: dict[str, subprocess.Popen[bytes]] = {}
        self.leases: dict[tuple[str, int], tuple[Slot, float]] = {}
        self.by_age: deque[tuple[str, int]] = deque()
        self.seen: dict[str, dict[str, int]] = {}
        self.totals = dict.fromkeys(("written", "sent", "taken_back", "kills", "waits"), 0)

    def start(self, kind: str) -> None:
        command = [
            sys.executable,
            "-c",
            "import sys; from camgraph.tools.lab.proofs.slot_stress import read_for_ever as r; r(*sys.argv[1:])",
        ]
        self.readers[kind] = subprocess.Popen([*command, self.folder, kind])  # noqa: S603

    def receive(self, *, wait_ms: int = 0) -> None:
        while self.signals.poll(wait_ms):
            op, kind, value = unpack(self.signals.recv())
            if op == "hello":
                self._connect(kind, value)
            elif op == "free":
                self._let_go((kind, value))
            else:
                self.seen[kind] = value
            wait_ms = 0

    def _connect(self, kind: str, pid: int) -> None:
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUSH)
        socket.setsockopt(zmq.SNDHWM, 32)
        socket.connect(f"ipc://{self.folder}/{kind}.{pid}")
        self.sockets[kind] = socket

    def _let_go(self, place: tuple[str, int]) -> None:
        lease = self.leases.pop(place, None)
        if lease is not None:
            self.ring.release(lease[0])

    def write(self, number: int) -> None:
        try:
            slot = self.ring.allocate(_WORDS * 8)
        except BadItem:
            self.totals["waits"] += 1
            self.receive(wait_ms=1)
            return
        slot.bytes().view(np.uint64)[:_WORDS] = number
        self.totals["written"] += 1
        for kind, socket in self.sockets.items():
            self._send(kind, socket, slot, number)
        self.ring.release(slot)

    def _send(self, kind: str, socket: zmq.Socket[bytes], slot: Slot, number: int) -> None:
        try:
            socket.send(pack([number, slot.descriptor]), zmq.NOBLOCK)
        except zmq.Again:
            return
        self.ring.keep(slot)
        self.leases[kind, number] = (slot, time.monotonic())
        self.by_age.append((kind, number))
        self.totals["sent"] += 1

    def take_back(self) -> None:
        """Take back slots whose time is over: one may be written again while a late reader still looks at it."""
        before = time.monotonic() - _LEASE_S
        while self.by_age:
            place = self.by_age[0]
            lease = self.leases.get(place)
            if lease is not None and lease[1] > before:
                return
            self.by_age.popleft()
            if lease is not None:
                self.totals["taken_back"] += 1
                self._let_go(place)

    def kill(self, kind: str) -> None:
        reader = self.readers[kind]
        reader.kill()
        reader.wait()
        self.sockets.pop(kind).close(0)
        self.totals["kills"] += 1
        self.start(kind)

    def end(self) -> None:
        for socket in self.sockets.values():
            socket.setsockopt(zmq.SNDHWM, 0)
            socket.send(pack(None))
        until = time.monotonic() + 30
        while len(self.seen) < len(self.sockets) and time.monotonic() < until:
            self.receive(wait_ms=100)
        for place in list(self.leases):
            self._let_go(place)
        for reader in self.readers.values():
            reader.wait(timeout=30)


def stress(frames: int) -> dict[str, Any]:
    """Run the whole; the results, in numbers."""
    with tempfile.TemporaryDirectory(prefix="cgs") as folder:
        owner = _Owner(folder)
        for kind in _KINDS:
            owner.start(kind)
        while len(owner.sockets) < len(_KINDS):
            owner.receive(wait_ms=100)
        started = time.monotonic()
        number, next_kill = 0, frames // (_KILLS + 1)
        while owner.totals["written"] < frames:
            number += 1
            owner.write(number)
            owner.receive()
            owner.take_back()
            if owner.totals["written"] >= next_kill and "killed" in owner.sockets:
                owner.kill("killed")
                next_kill += frames // (_KILLS + 1)
        seconds = time.monotonic() - started
        while len(owner.sockets) < len(_KINDS):
            owner.receive(wait_ms=100)
        owner.end()
        in_use = owner.ring.in_use
        owner.ring.close()
        left = [path.name for path in Path("/dev/shm").glob(f"camgraph-{os.getuid()}-stress{os.getpid()}*")]  # noqa: S108
    totals = {name: sum(seen[name] for seen in owner.seen.values()) for name in ("good", "noticed", "torn")}
    rate = round(frames / seconds)
    return {**owner.totals, **totals, "slots_in_use": in_use, "left_over": left, "frames_per_s": rate}
