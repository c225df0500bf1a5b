"""Processes die at any moment, and frames are done in any order: nothing is lost, and nothing is stuck.

    src ─> mid ─right─┐
      └──────left─────┴> both        the smallest graph in which two senders of a reader know different things

A state machine over the real senders, readers and joins. Only the sockets between them are played, so that the same
steps always lead to the same end: a message arrives when its reader turns, and dies with either side. What it checks:

    S1  a sender keeps each message until it is acknowledged, and resends it to the successor of a dead reader
    S2  a reader takes the frames of a camera in their order, and none twice in one life
    S3  a partner is missing only if its frame was joined and done in an earlier life: that is no drop
    S4  once all processes live and turn, every submitted frame is joined, done, and forgotten by its sender

and of the rules in `pipeline.transport.watermark`, of which S3 and S4 are the consequences:

    W1  a watermark only rises, and a final one is not higher than the provisional one
    W3  nothing comes that was reported not to come
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.pipeline.test_done_before_death import DOWN, LEFT, Both, Mid, Note, Upstream

from camgraph.pipeline.items import Key
from camgraph.pipeline.messages import Tombstone
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.in_flight import Ticket
from camgraph.pipeline.transport.partition import Received
from camgraph.pipeline.transport.protocol import ATTACH
from camgraph.pipeline.transport.protocol import SenderId as ProtocolSender
from camgraph.pipeline.transport.receiver import Receiver

_WINDOW = 6
_LATE = st.lists(st.sampled_from(["src", "mid"]), max_size=2, unique=True)


class Line:
    """A sender's connection, in the place of `pipeline.transport.connection.Connection`."""

    def __init__(self, endpoint: str, sender: ProtocolSender, poller: object) -> None:
        self.socket = self
        self.identity = sender.routing_id()
        self.router = ROUTERS.get(endpoint)
        self.received: deque[bytes] = deque()
        if self.router:
            self.router.lines[self.identity] = self
        self.send(ATTACH)

    def send(self, kind: bytes, body: bytes = b"") -> None:
        if self.router:
            self.router.received.append((self.identity, kind + body))

    def receive(self) -> list[bytes] | None:
        return [self.received.popleft()] if self.received else None

    def lost(self, ready: object) -> bool:
        return False

    def close(self) -> None:
        if self.router:
            self.router.lines.pop(self.identity, None)


class Router:
    """A reader's socket. What has not been read when it is closed is gone."""

    def __init__(self, receiver: Receiver, clock: Callable[[], float]) -> None:
        self.received: deque[tuple[bytes, bytes]] = deque()
        self.lines: dict[bytes, Line] = {}
        self.to = b""
        self.endpoint = receiver.endpoint
        self.mailboxes = receiver.mailboxes
        self.known: dict[str, tuple[Key, Key]] = {}
        self.put = receiver.mailboxes.put
        receiver.mailboxes.put = self.checked_put  # type: ignore[method-assign]
        ROUTERS[self.endpoint] = self
        receiver.socket.close(0)
        receiver.socket = self  # type: ignore[assignment]
        receiver._pending._clock = clock

    def checked_put(self, received: Received) -> None:
        assert not received.partition.is_silent(received.key), f"W3: {received.key} came on {received.partition.edge}"
        self.put(received)

    def check_watermarks(self) -> None:
        for partition in self.mailboxes.partitions:
            none = Key(-1, 0, 0)
            provisional, final = partition.watermark.provisional or none, partition.watermark.final or none
            before = self.known.get(partition.edge.name, (none, none))
            assert before[0] <= provisional, "W1"
            assert before[1] <= final <= provisional, "W1"
            self.known[partition.edge.name] = provisional, final

    def getsockopt(self, option: int) -> int:
        return zmq.POLLIN if self.received else 0

    def recv_multipart(self, flags: int) -> tuple[bytes, bytes]:
        return self.received.popleft()

    def send(self, body: bytes, flags: int) -> None:
        if flags & zmq.SNDMORE:
            self.to = body
        elif self.to in self.lines:
            self.lines[self.to].received.append(body)

    def close(self, linger: int) -> None:
        ROUTERS.pop(self.endpoint, None)
        for line in self.lines.values():
            line.router = None


ROUTERS: dict[str, Router] = {}


class All:
    """All sockets are worth a look."""

    def __contains__(self, socket: object) -> bool:
        return True


class Deaths(RuleBasedStateMachine):
    """One camera. `untold`: (who, of whom) has not heard yet of a new life."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="cgm", dir="/tmp"))
        self.lives = {"mid.0": 0, "both.0": 0}
        self.now_s = 0.0
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("camgraph.pipeline.transport.sender.Connection", Line)
        self.submitted = 0
        self.forgotten: set[int] = set()
        """Frames that the source has heard to be done on both ways."""
        self.joined: set[int] = set()
        self.done: set[int] = set()
        self.src = Upstream()
        self.begin_mid()
        self.begin_both()
        self.untold: list[tuple[str, str]] = []
        for who, process in (("src", "mid.0"), ("src", "both.0"), ("mid", "both.0")):
            self.hears(who, process)
        self.submit(3)
        self.settle()

    def at(self, process: str) -> str:
        return f"ipc://{self.folder}/{process}.{self.lives[process]}"

    def begin_mid(self) -> None:
        self.lives["mid.0"] += 1
        life = self.lives["mid.0"]
        self.mid = Mid(self.folder, self.at("mid.0"), successor=life > 1, incarnation=life)
        Router(self.mid.receiver, lambda: self.now_s)

    def begin_both(self) -> None:
        self.lives["both.0"] += 1
        self.both = Both(self.at("both.0"), successor=self.lives["both.0"] > 1)
        Router(self.both.receiver, lambda: self.now_s)
        self.taken: list[int] = []
        self.open: list[int] = []
        """Taken in this life, and not finished."""

    # ---- what happens

    @precondition(lambda self: self.submitted - len(self.forgotten) < _WINDOW)
    @rule(frames=st.integers(1, 3))
    def submit(self, frames: int) -> None:
        for _ in range(frames):
            self.submit_one()

    def submit_one(self) -> None:
        seq = self.submitted
        self.submitted += 1
        ticket = Ticket(lambda: self.forgotten.add(seq))
        self.src.sender.submit([DOWN, LEFT], "a", Key(0, seq, 0), Note(stamp(seq, "a")), ticket)
        ticket.closed()

    @rule(who=st.lists(st.sampled_from(["src", "mid", "both"]), min_size=1, max_size=8))
    def turn(self, who: list[str]) -> None:
        for one in who:
            getattr(self, f"turn_{one}")()

    @rule()
    def settle(self) -> None:
        """All that is on its way arrives, as far as it can."""
        for _ in range(4):
            self.turn(["src", "mid", "both"])

    def turn_src(self) -> None:
        self.src.sender.receive(All())
        self.src.sender.flush()

    def turn_mid(self) -> None:
        self.mid.sender.receive(All())
        self.mid.hear()

    def turn_both(self) -> None:
        before = set(self.both.rows)
        self.both.turn()
        for seq, item in self.both.rows.items():
            if seq in before:
                continue
            assert not self.taken or seq > self.taken[-1], "S2"
            self.taken.append(seq)
            self.open.append(seq)
            if isinstance(item.payload, Tombstone):
                assert seq in self.done, f"S3: {seq} has lost its partner"
            else:
                self.joined.add(seq)

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, _WINDOW))
    def finish(self, which: int) -> None:
        seq = self.open.pop(which % len(self.open))
        self.both.finish(seq)
        self.done.add(seq)

    @rule(late=_LATE)
    def mid_dies(self, late: list[str]) -> None:
        self.mid.close()
        self.begin_mid()
        self.untold = [(who, process) for who, process in self.untold if who != "mid" and process != "mid.0"]
        self.begun([("src", "mid.0"), ("mid", "both.0")], late)

    @rule(done=st.lists(st.integers(0, _WINDOW), max_size=3), received=st.sampled_from(["", "src", "mid"]), late=_LATE)
    def both_dies(self, done: list[int], received: str, late: list[str]) -> None:
        """Its last signals may reach one of its senders and not the other."""
        for which in done[: len(self.open)]:
            self.finish(which)
        self.both.receiver.flush()
        for _ in range(3 if received else 0):
            self.turn([received])
        self.both.receiver.close()
        self.begin_both()
        self.untold = [(who, process) for who, process in self.untold if process != "both.0"]
        self.begun([("src", "both.0"), ("mid", "both.0")], late)

    def begun(self, pairs: list[tuple[str, str]], late: list[str]) -> None:
        """A new life has begun: all senders but those in `late` learn of it at once."""
        for who, process in pairs:
            if who in late:
                self.untold.append((who, process))
            else:
                self.hears(who, process)

    @precondition(lambda self: self.untold)
    @rule(which=st.integers(0, 5))
    def tell(self, which: int) -> None:
        """Each sender learns of a new life from the supervisor at its own time."""
        self.hears(*self.untold.pop(which % len(self.untold)))

    def hears(self, who: str, process: str) -> None:
        sender = self.src.sender if who == "src" else self.mid.sender
        sender.connect({process: self.at(process)})

    @invariant()
    def watermarks_hold(self) -> None:
        for router in ROUTERS.values():
            router.check_watermarks()

    # ---- the end

    def teardown(self) -> None:
        try:
            while self.untold:
                self.tell(0)
            turns = 0
            while len(self.forgotten) < self.submitted or self.src.sender.in_flight:
                turns += 1
                assert turns < 1000, f"S4: of {self.submitted} submitted, {sorted(self.forgotten)} are forgotten"
                self.now_s += 1
                self.turn(["src", "mid", "both"])
                while self.open:
                    self.finish(0)
            assert self.joined == self.done == self.forgotten == set(range(self.submitted))
            assert self.both.counters.get("dropped.unpaired", "a") == 0
        finally:
            self.patch.undo()
            self.src.sender.close()
            self.src.ring.close()
            self.mid.close()
            self.both.receiver.close()
            shutil.rmtree(self.folder)


TestDeaths = pytest.mark.slow(Deaths.TestCase)
TestDeaths.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
