"""The messages between a sender and a reader, and how they identify each other.

    sender                                        reader
      |------ A  attach ------------------------->|    its first word on a connection
      |<----- H  hello: of each (edge, camera) the stamp up to which all is done, and that of the last one seen
      |------ W  watermarks: of each (edge, camera) the key up to which all messages that do not come are done
      |------ D  n, rows of [edge, camera, key, deaths, tries, message]: numbered n, n + 1, ...
      |<----- S  [credit n...], [ack n...], [tried n | 0: survived...]
      |<----- G  again: attach anew, this connection is no longer believed

Each is one ZeroMQ message of one part: a byte for its kind, followed by msgpack. All messages of a sender for a reader
within a turn of its loop travel as one D, and all signals of a reader for a sender as one S.

A sender's routing id is `process#incarnation#connection`: ZeroMQ puts it in front of each of its messages, so it is not
repeated in them. Every connection has its own id and counts its messages from 1. So messages of an earlier connection
that are still on the way differ from those of this one, and a missing number means that ZeroMQ lost something.

Received messages are checked here; one that breaks the format raises WireError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.items import LARGE_PART, Key
from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.transport.wire import pack, unpack

ATTACH, HELLO, WATERMARKS, DATA, SIGNAL, AGAIN = b"A", b"H", b"W", b"D", b"S", b"G"
_NUMBER = {int}


class Known(NamedTuple):
    """A reader's knowledge of an edge and camera: up to `done` all is done, `seen` is the last that has come."""

    edge: str
    camera: str
    done: Stamp | None
    seen: Stamp


class Watermark(NamedTuple):
    """A sender's low watermark of an edge and camera, for a reader that may not know it.

    Every message with a key up to `key` that does not come is done. `again` is the key of the last of them that comes;
    a sender that has not taken all of them itself does not know that yet, and reports that the watermark is not
    `final`.
    """

    edge: str
    camera: str
    key: Key
    again: Key | None
    final: bool


class SenderId(NamedTuple):
    """One connection of one incarnation of a sending process. Later ones compare higher."""

    process: str
    incarnation: int
    connection: int

    def routing_id(self) -> bytes:
        """As ZeroMQ carries it."""
        return f"{self.process}#{self.incarnation}#{self.connection}".encode()

    @classmethod
    def of(cls, routing_id: bytes) -> SenderId:
        """The inverse of `routing_id`. Raises WireError."""
        try:
            process, incarnation, connection = routing_id.decode().rsplit("#", 2)
            return cls(process, int(incarnation), int(connection))
        except ValueError:
            raise WireError(
                f"a routing id {routing_id[:64]!r}; expected process#incarnation#connection: no process of this run"
            ) from None


Head = tuple[str, str, Key, int, int, bytes]
"""Edge and camera of a data message, its place in the camera's order, deaths, tries, and its bytes
(`pipeline.transport.wire`)."""


def plain_row(edge: str, camera: str, key: Key, blamed: tuple[int, int], body: bytes) -> tuple[Any, ...]:
    """A data message as `packed_data` takes it. `blamed`: deaths and tries."""
    epoch, seq, part = key if key.part < LARGE_PART else key.plain()
    return edge, camera, epoch, seq, part, *blamed, body


def packed_data(first: int, rows: Sequence[tuple[Any, ...]]) -> bytes:
    """Data messages as they travel, numbered from `first`."""
    return pack((first, rows))


def read_data(body: bytes | memoryview) -> tuple[int, list[Any]]:
    """The inverse of `packed_data`; the rows are for `read_head`. Raises WireError."""
    values = unpack(body)
    if type(values) is not list or len(values) != 2 or type(values[0]) is not int or type(values[1]) is not list:
        raise WireError(f"data messages {values!r:.100}; expected a number and a list of rows")
    return values[0], values[1]


def read_head(row: Any) -> Head:
    """One data message of `read_data`. Raises WireError."""
    try:
        edge, camera, epoch, seq, part, deaths, tries, body = row
        # A plain key, as nearly all are, is made without asking twice.
        key = Key(epoch, seq, part) if type(part) is type(seq) is type(epoch) is int else Key.of(epoch, seq, part)
    except (ValueError, TypeError):
        raise WireError(f"a data message headed {row!r:.100}; expected 8 values, three of them a key") from None
    if not (type(edge) is type(camera) is str and type(deaths) is type(tries) is int and type(body) is bytes):
        raise WireError(f"a data message headed {row!r:.100}; expected edge, camera, key, deaths, tries, bytes")
    return edge, camera, key, deaths, tries, body


class Signals(NamedTuple):
    """A reader's signals about the messages that it got on one connection, by their numbers. A `tried` 0: survived.

    An ack implies the credit, if that has not been given back.
    """

    credits: list[int]
    acks: list[int]
    tried: list[int]

    def packed(self) -> bytes:
        """As they travel."""
        return pack(self)

    @classmethod
    def read(cls, body: bytes | memoryview) -> Signals:
        """The inverse of `packed`. Raises WireError."""
        values = unpack(body)
        if type(values) is not list or len(values) != 3 or not all(_is_numbers(row) for row in values):
            raise WireError(f"signals {values!r:.100}; expected three lists of numbers")
        return cls(*values)


def packed_hello(known: Iterable[Known]) -> bytes:
    """A reader's answer to an attach, as it travels."""
    return pack(list(known))


def read_hello(body: bytes | memoryview) -> list[Known]:
    """The inverse of `packed_hello`. Raises WireError."""
    rows = unpack(body)
    try:
        known = [Known(edge, camera, _stamp(done), Stamp.from_wire(seen)) for edge, camera, done, seen in rows]
    except (ValueError, TypeError) as error:
        raise WireError(f"a hello {rows!r:.100}; expected rows of edge, camera, two stamps: {error}") from None
    if not isinstance(rows, list) or not all(_are(str, row[:2]) for row in known):
        raise WireError(f"a hello {rows!r:.100}; expected a list of rows that begin with the names of edge and camera")
    return known


def packed_watermarks(watermarks: Iterable[Watermark]) -> bytes:
    """A sender's watermarks, as they travel."""
    return pack([[w.edge, w.camera, w.key.plain(), w.again and w.again.plain(), w.final] for w in watermarks])


def read_watermarks(body: bytes | memoryview) -> list[Watermark]:
    """The inverse of `packed_watermarks`. Raises WireError."""
    rows = unpack(body)
    try:
        watermarks = [
            Watermark(edge, camera, Key.of(*key), None if again is None else Key.of(*again), final)
            for edge, camera, key, again, final in rows
        ]
    except (ValueError, TypeError):
        raise WireError(f"watermarks {rows!r:.100}; expected rows of edge, camera, two keys, final") from None
    valid = isinstance(rows, list) and _are(bool, [row.final for row in watermarks])
    if not (valid and all(_are(str, row[:2]) for row in watermarks)):
        raise WireError(f"watermarks {rows!r:.100}; expected a list of rows of two names, two keys, true or false")
    return watermarks


def _stamp(values: Any) -> Stamp | None:
    return None if values is None else Stamp.from_wire(values)


def _is_numbers(row: Any) -> bool:
    return type(row) is list and set(map(type, row)) <= _NUMBER


def _are(wanted: type[Any], values: Iterable[Any]) -> bool:
    return all(isinstance(value, wanted) for value in values)
