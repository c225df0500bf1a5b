"""The sinks' side of the socket, against a program that the test plays."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from camgraph.pipeline.errors import Unavailable, WireError
from camgraph.pipeline.testing import stamp
from camgraph.stages.messages import Tracks
from camgraph.stages.sinks.handover.link import Link
from camgraph.stages.sinks.handover.parcel import CREDIT, SIZES, Parcel, own_tracks, tracks_of, tracks_parcel


def soon() -> float:
    return time.monotonic() + 5.0


class Program:
    """Listens, and says what it is told to say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen()

    def accept(self) -> socket.socket:
        connection, _ = self.server.accept()
        connection.settimeout(60.0)
        return connection


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path / "s")
    yield program
    program.server.close()


def connected(program: Program) -> tuple[Link, socket.socket]:
    link, taken = Link(str(program.path)), list[socket.socket]()

    def meet() -> None:
        taken.append(program.accept())
        taken[0].sendall(b"B")

    thread = threading.Thread(target=meet)
    thread.start()
    assert link.connect() == "every"
    thread.join()
    return link, taken[0]


def read(connection: socket.socket) -> Parcel:
    def exactly(size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            piece = connection.recv(size - len(data))
            assert piece
            data += piece
        return data

    header, body = SIZES.unpack(exactly(SIZES.size))
    return Parcel.read(bytes(exactly(header)), exactly(body))


def test_nothing_is_sent_without_a_credit(program: Program) -> None:
    link, connection = connected(program)
    assert not link.wait_credit(time.monotonic())
    connection.sendall(CREDIT.pack(1, 0)[:7])
    assert not link.wait_credit(time.monotonic() + 0.05)
    connection.sendall(CREDIT.pack(1, 0)[7:])
    assert link.wait_credit(soon())
    assert link.send(Parcel({"a": 1})) == 1
    assert dict(read(connection).values) == {"a": 1}
    assert not link.wait_credit(time.monotonic())
    assert not link.wait_done(1, time.monotonic())
    connection.sendall(CREDIT.pack(2, 0) + CREDIT.pack(2, 1))
    assert link.wait_done(1, soon())
    link.close()
    connection.close()


def test_a_lost_program_is_waited_for_and_numbers_begin_anew(program: Program) -> None:
    link, connection = connected(program)
    connection.sendall(CREDIT.pack(1, 0))
    assert link.wait_credit(soon())
    link.send(Parcel({}))
    connection.close()
    with pytest.raises(Unavailable) as raised:
        link.wait_done(1, soon())
    assert raised.value.patient
    program.server.close()
    with pytest.raises(Unavailable, match="is gone"):
        link.connect()
    assert link.connections == 1


@given(
    arrays.arrays(np.float32, arrays.array_shapes(min_dims=1, max_dims=3, min_side=0), elements=st.floats(width=32)),
    st.dictionaries(st.text(max_size=5), st.integers(-(2**60), 2**60), max_size=3),
)
def test_a_parcel_comes_as_it_was_sent(array: np.ndarray, values: dict[str, int]) -> None:
    whole = b"".join(Parcel(values, {"a": array, "b": array.T}).parts())
    header, body = SIZES.unpack_from(whole)
    rest = whole[SIZES.size :]
    parcel = Parcel.read(rest[:header], bytearray(rest[header:]))
    assert len(rest) == header + body
    assert parcel.values == values
    np.testing.assert_array_equal(parcel.arrays["a"], array)
    np.testing.assert_array_equal(parcel.arrays["b"], array.T)


def test_a_torn_parcel_is_refused() -> None:
    whole = b"".join(Parcel({}, {"a": np.zeros(4)}).parts())
    header, _ = SIZES.unpack_from(whole)
    rest = whole[SIZES.size :]
    with pytest.raises(WireError, match="outside of a body"):
        Parcel.read(rest[:header], bytearray(rest[header:-1]))


def test_tracks_come_as_they_were_and_their_copies_are_their_own() -> None:
    boxes = np.array([[1, 2, 3, 4]], np.float32)
    tracks = Tracks(
        stamp(3, "a"),
        boxes,
        np.ones(1, np.float32),
        np.zeros((1, 17, 3), np.float32),
        (96, 64),
        np.zeros(1, np.int64),
        ids=np.array([7]),
    )
    own = own_tracks(tracks)
    boxes[:] = 0
    assert own.boxes.tolist() == [[1, 2, 3, 4]]
    whole = b"".join(tracks_parcel(own, 2).parts())
    header, _ = SIZES.unpack_from(whole)
    rest = whole[SIZES.size :]
    parcel = Parcel.read(rest[:header], bytearray(rest[header:]))
    again = tracks_of(parcel)
    assert (again.stamp, again.skeleton, again.frame_size, parcel.values["skipped"]) == (
        own.stamp,
        "coco-17",
        (96, 64),
        2,
    )
    assert again.ids.tolist() == [7]
