"""The reading side of a process: one socket for all edges that come in, and the signals that go back.

A credit goes back when a message was dropped, or was taken and its memory is no longer read. An ack goes back when
everything made of the message is done, down to the ends of the graph (a sink, the outbox); then the sender forgets the
message. So a sender can resend all messages that a dead reader had not finished, even if processes behind that reader
died at the same time. The receiver recognises a repeated message by its key, and does not process the message again;
the signals go to each process that sent the message.

`pipeline.transport.protocol` has the format of the messages. `pipeline.transport.mailboxes` keeps messages until they
are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import zmq

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Message
from camgraph.pipeline.plan import ProcessPlan
from camgraph.pipeline.shm.mappings import Mappings, SegmentGone
from camgraph.pipeline.system.run_folder import unlink_socket
from camgraph.pipeline.transport.mailbox import Gone
from camgraph.pipeline.transport.mailboxes import Mailboxes
from camgraph.pipeline.transport.partition import Partition, Received
from camgraph.pipeline.transport.pending_acks import PendingAcks
from camgraph.pipeline.transport.protocol import (
    AGAIN,
    ATTACH,
    DATA,
    HELLO,
    SIGNAL,
    WATERMARKS,
    Head,
    Known,
    SenderId,
    packed_hello,
    read_data,
    read_head,
    read_watermarks,
)
from camgraph.pipeline.transport.refusals import Refusals
from camgraph.pipeline.transport.wire import MAX_PART, read_header

_RECEIVE_AT_ONCE = 256
# As plain numbers: an enumeration takes longer to combine than a message to send.
_READABLE, _NOBLOCK, _NOBLOCK_MORE = int(zmq.POLLIN), int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)


@dataclass(slots=True)
class _Peer:
    """One connection. `received`: the number of messages that have come on the connection.

    `gap`: a message was missing, so later messages are ignored. `gone`: segments that were missing when this
    incarnation of the sender named them, on this connection or an earlier one.
    """

    sender: SenderId
    gone: set[str] = field(default_factory=set)
    mappings: Mappings = field(default_factory=Mappings)
    partitions: dict[tuple[str, str], Partition] = field(default_factory=dict)
    """The partitions on which the sender has sent: the plan is asked once for each."""
    received: int = 0
    gap: bool = False


class Receiver:
    """All incoming edges of a process behind one socket. Checked messages go to `mailboxes`.

    `accepted`: edge name -> the message types of its port.
    """

    def __init__(
        self,
        endpoint: str,
        plan: ProcessPlan,
        accepted: Mapping[str, Iterable[type[Message]]],
        parts: ProcessParts,
    ) -> None:
        self.endpoint = endpoint
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.MAXMSGSIZE, MAX_PART)
        self.socket.bind(endpoint)
        self._senders = {name: frozenset(processes) for name, processes in plan.senders.items()}
        self._cameras = frozenset(plan.cameras)
        self._counters = parts.counters
        self._log = parts.log
        self._refusals = Refusals(parts.counters, parts.log)
        self._pending = PendingAcks()
        self.mailboxes = Mailboxes(
            plan.incoming,
            accepted,
            Gone(parts.counters, self._pending.finish, self._refuse),
            window=plan.window,
            priorities=plan.priorities,
            successor=parts.incarnation > 1,
        )
        self._peers: dict[bytes, _Peer] = {}

    def revise(self, plan: ProcessPlan) -> None:
        """Accept the senders of this plan from now on, and forget the cameras that the plan lacks: they are done."""
        self._senders = {name: frozenset(processes) for name, processes in plan.senders.items()}
        self._cameras = frozenset(plan.cameras)
        processes = {process for processes in self._senders.values() for process in processes}
        for peer in self._peers.values():
            peer.partitions.clear()
        for identity in [identity for identity, peer in self._peers.items() if peer.sender.process not in processes]:
            del self._peers[identity]
            self._pending.close(identity)
        self.mailboxes.keep_only(plan.cameras, plan.priorities)

    # ---- receiving

    def receive(self) -> bool:
        """Put the messages that have arrived into the mailboxes; True if more have arrived."""
        for _ in range(_RECEIVE_AT_ONCE):
            if not int(self.socket.getsockopt(zmq.EVENTS)) & _READABLE:
                return False
            self._receive_one(*self.socket.recv_multipart(_NOBLOCK))
        return True

    def _receive_one(self, identity: bytes, body: bytes, *more: bytes) -> None:
        if body == ATTACH:
            try:
                self._attach(identity)
            except WireError as error:
                self._refusals.add(error, sender="", counted="refused.attach")
        elif peer := self._peers.get(identity):
            try:
                if body[:1] == WATERMARKS and not more:
                    self._watermarks(peer, body)
                else:
                    self._data(identity, peer, body, len(more))
            except WireError as error:
                self._refusals.add(error, sender=peer.sender.process, counted="dropped.wire")

    def _attach(self, identity: bytes) -> None:
        """A sender starts, or starts anew: ignore messages that are on the way on its earlier connections."""
        sender = SenderId.of(identity)
        if not any(sender.process in processes for processes in self._senders.values()):
            raise WireError(f"{sender.process!r} wants to send; expected one of: {self._known()}")
        known = {other: peer.sender for other, peer in self._peers.items() if peer.sender.process == sender.process}
        if any(other > sender for other in known.values()):
            return  # this message was on the way on a connection that is over
        if identity in known:
            raise WireError(f"{sender.process} attaches twice on one connection; expected a routing id for each")
        peer = self._peers[identity] = _Peer(sender)
        self._pending.open(identity)
        for other, before in known.items():
            if before.incarnation == sender.incarnation:
                peer.gone |= self._peers[other].gone
            del self._peers[other]
            self._pending.close(other)
        partitions = [
            partition
            for partition in self.mailboxes.partitions
            if sender.process in self._senders.get(partition.edge.name, ())
        ]
        seen = [(partition, partition.last_stamp) for partition in partitions]
        hello = [
            Known(partition.edge.name, partition.camera, partition.finished, last) for partition, last in seen if last
        ]
        self._send(identity, HELLO, packed_hello(hello))

    def _known(self) -> str:
        return ", ".join(sorted({process for processes in self._senders.values() for process in processes}))

    def _data(self, identity: bytes, peer: _Peer, body: bytes, more: int) -> None:
        """Take in messages that came together. An unreadable message counts as one."""
        peer.received += 1
        if peer.gap:
            return
        if body[:1] != DATA or more:
            raise WireError(f"a message of kind {body[:1]!r} in {1 + more} parts; expected {DATA!r} in 1")
        first, rows = read_data(memoryview(body)[1:])
        if first != peer.received:
            # ZeroMQ has reconnected by itself. If later messages overtook the lost ones, these would count as repeated.
            peer.gap = True
            self._log.info("message_missing", sender=peer.sender.process, expected=peer.received, got=first)
            return
        peer.received += len(rows) - 1
        for n, row in enumerate(rows, first):
            try:
                if not self._take_in(identity, peer, n, read_head(row)):
                    return
            except WireError as error:
                # Refuse the message for good: a resent copy would have the same mistake.
                self._pending.ack_number(identity, n)
                self._refusals.add(error, sender=peer.sender.process, counted="dropped.wire")

    def _watermarks(self, peer: _Peer, body: bytes) -> None:
        for reported in read_watermarks(memoryview(body)[1:]):
            self._check_edge(peer, reported.edge)
            # A sender may not know yet that a camera is gone. Its report must not hold for a later camera of that name.
            if reported.camera in self._cameras:
                self.mailboxes.raise_watermark(reported)

    def _check_edge(self, peer: _Peer, edge: str) -> None:
        if peer.sender.process not in self._senders.get(edge, ()):
            raise WireError(f"a message of {peer.sender.process} on {edge!r}, which is no edge from there to here")

    def _partition(self, peer: _Peer, edge: str, camera: str) -> Partition:
        self._check_edge(peer, edge)
        partition = peer.partitions[edge, camera] = self.mailboxes.partition(edge, camera)
        return partition

    def _take_in(self, identity: bytes, peer: _Peer, n: int, head: Head) -> bool:
        """Put a message into its mailbox unless it is repeated. False if the messages after it must be ignored."""
        edge, camera, key, deaths, tries, body = head
        partition = peer.partitions.get((edge, camera)) or self._partition(peer, edge, camera)
        if partition.knows(key):
            self._repeated(identity, partition, n, key)
            return True
        header = read_header(body, partition.types)
        mapping = None
        if header.descriptor:
            try:
                mapping = peer.mappings.get(header.descriptor.segment)
            except SegmentGone as error:
                self._segment_gone(identity, peer, header.descriptor.segment, error)
                return False
        origins = [(identity, n)]
        received = Received(partition, key, header, mapping, origins, peer.sender.incarnation, deaths, tries)
        if mapping is None or received.intact():
            self.mailboxes.put(received)
        else:
            self._counters.add("dropped.stale", partition.camera)
            self._pending.ack_number(identity, n)
        return True

    def _segment_gone(self, identity: bytes, peer: _Peer, name: str, error: SegmentGone) -> None:
        """Ask the sender to attach anew, because a message names shared memory that is gone.

        As a rule the sender has died, and its successor resends the message: no later message may overtake that one. A
        living sender attaches anew. If the sender then names the same segment, somebody has removed the file, and the
        message is lost: that raises WireError.
        """
        if name in peer.gone:
            raise WireError(f"{error}, though its owner lives: do not remove files of /dev/shm while a run uses them")
        self._log.info("segment_gone", sender=peer.sender.process, error=str(error))
        peer.gone.add(name)
        peer.gap = True
        self._send(identity, AGAIN, b"")

    def _repeated(self, identity: bytes, partition: Partition, n: int, key: Key) -> None:
        self._counters.add("repeated", partition.camera)
        first = partition.unfinished.get(key)
        if first is None:
            self._pending.ack_number(identity, n)
            return
        first.origins.append((identity, n))
        if first.credited:
            self._pending.credit_number(identity, n)

    # ---- signals

    def credit(self, item: Item) -> None:
        """Report that the item's memory is no longer read."""
        self._pending.credit(item)

    def ack(self, item: Item) -> None:
        """Report that everything made of the item is done."""
        self._pending.ack(item)

    def trying(self, item: Item) -> None:
        """Report that the item is about to be processed alone: if this process dies of the item, its senders know."""
        self._pending.trying(item)
        self.flush()

    def survived(self, item: Item) -> None:
        """Report that this process did not die of the item."""
        self._pending.survived(item)

    def _refuse(self, row: Sequence[Received], error: WireError) -> None:
        edge, camera = row[0].partition.edge, row[0].partition.camera
        self._refusals.add(error, sender=edge.sender, counted="dropped.wire", camera=camera)
        for received in row:
            self._pending.finish(received)

    def flush(self) -> None:
        """Send the signals that wait, together."""
        for identity, signals in self._pending.take():
            self._send(identity, SIGNAL, signals.packed())

    def _send(self, identity: bytes, kind: bytes, body: bytes) -> None:
        # A peer that is gone needs no signal: its successor attaches again.
        try:
            self.socket.send(identity, _NOBLOCK_MORE)
            self.socket.send(kind + body, _NOBLOCK)
        except zmq.ZMQError:
            return

    def close(self) -> None:
        """Close the socket and remove its file."""
        self.socket.close(0)
        unlink_socket(self.endpoint)
