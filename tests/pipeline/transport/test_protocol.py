"""What sender and reader say comes back the same; what is broken is refused with WireError and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.items import Key
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.protocol import (
    Known,
    SenderId,
    Signals,
    Watermark,
    packed_data,
    packed_hello,
    packed_watermarks,
    plain_row,
    read_data,
    read_head,
    read_hello,
    read_watermarks,
)
from camgraph.pipeline.transport.wire import pack

numbers = st.integers(0, 1 << 62)
keys = st.builds(Key, numbers, numbers, numbers | st.integers(0, 1 << 400))
texts = st.text(max_size=20)


def read_heads(body: bytes) -> list[Any]:
    """All that a reader checks of data messages before it looks into each."""
    return [read_head(row) for row in read_data(body)[1]]


READERS: list[Callable[[bytes], Any]] = [read_heads, Signals.read, read_hello, read_watermarks]


@given(st.text(max_size=20), st.integers(0, 999), st.integers(0, 999))
def test_a_sender_is_known_by_its_routing_id(process: str, incarnation: int, connection: int) -> None:
    sender = SenderId(process, incarnation, connection)
    assert SenderId.of(sender.routing_id()) == sender


@pytest.mark.parametrize("identity", [b"", b"\x00k\x8b\x45\x67", b"src.a", b"src.a#1", b"src.a#1#x", b"\xff#1#1"])
def test_another_routing_id_is_nobodys(identity: bytes) -> None:
    with pytest.raises(WireError, match="process#incarnation#connection"):
        SenderId.of(identity)


def test_later_connections_and_incarnations_compare_higher() -> None:
    assert SenderId("a", 1, 2) < SenderId("a", 1, 10) < SenderId("a", 2, 1)


rows = st.tuples(texts, texts, keys, st.tuples(numbers, numbers), st.binary(max_size=20))


@given(numbers, st.lists(rows, max_size=4))
def test_data_messages_come_back(first: int, rows: list[tuple[str, str, Key, tuple[int, int], bytes]]) -> None:
    n, plain = read_data(packed_data(first, [plain_row(*row) for row in rows]))
    assert n == first
    assert [read_head(row) for row in plain] == [
        (edge, camera, key, *blamed, body) for edge, camera, key, blamed, body in rows
    ]


@given(st.lists(numbers), st.lists(numbers), st.lists(numbers))
def test_signals_come_back(credited: list[int], acked: list[int], tried: list[int]) -> None:
    assert Signals.read(Signals(credited, acked, tried).packed()) == (credited, acked, tried)


def test_a_hello_comes_back() -> None:
    known = [Known("src>model", "a", stamp(3, "a"), stamp(5, "a")), Known("src>model", "b", None, stamp(0, "b"))]
    assert read_hello(packed_hello(known)) == known


def test_what_is_passed_comes_back() -> None:
    watermarks = [
        Watermark("src>model", "a", Key(0, 9, 1), Key(0, 7, 0), final=True),
        Watermark("src>model", "b", Key(1, 0, 1 << 80), None, final=False),
    ]
    assert read_watermarks(packed_watermarks(watermarks)) == watermarks


@pytest.mark.parametrize("read", READERS)
@given(data=st.binary(max_size=100))
def test_garbage_is_refused(read: Callable[[bytes], Any], data: bytes) -> None:
    with pytest.raises(WireError):
        read(b"\xc1" + data)  # a byte that no msgpack begins with


nonsense = st.recursive(
    st.none() | st.integers(-5, 5) | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, min_size=1, max_size=8) | st.dictionaries(st.text(max_size=2), inner, min_size=1),
)


@pytest.mark.parametrize("read", READERS)
@given(value=nonsense)
@pytest.mark.slow
def test_well_formed_nonsense_is_refused(read: Callable[[bytes], Any], value: Any) -> None:
    try:
        read(pack(value))
    except WireError:
        return
    # Three lists of numbers are signals, whatever else they might be; a number and no rows is nothing at all.
    if read == read_heads:
        assert value[1] == []
    else:
        assert read == Signals.read
        assert all(isinstance(number, int) for row in value for number in row)


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (read_heads, [["e", "c", 0, 0, 0, 0, 0, b""]]),
        (read_heads, ["1", [["e", "c", 0, 0, 0, 0, 0, b""]]]),
        (read_heads, [1, {"e": "c"}]),
        (read_heads, [1, ["e"]]),
        (read_heads, [1, [["e", "c", 0, 0, 0, 0, b""]]]),
        (read_heads, [1, [["e", b"c", 0, 0, 0, 0, 0, b""]]]),
        (read_heads, [1, [["e", "c", 0, 0, 0, 0, "0", b""]]]),
        (read_heads, [1, [["e", "c", 0, 0, 0, 0, 0, "body"]]]),
        (read_heads, [1, [["e", "c", 0, 0, b"\x09\x01\x00", 0, 0, b""]]]),
        (read_heads, [1, [["e", "c", 0, 0, b"\x00", 0, 0, b""]]]),
        (Signals.read, [[1], [2]]),
        (Signals.read, [[1], [2], 3]),
        (Signals.read, [[1], ["2"], [[]]]),
        (read_hello, [["e", "c", None, [1, 2, 3]]]),
        (read_hello, [["e", "c", list(stamp()), None]]),
        (read_hello, [["e", "c", None, ["a", 0, "0", 0, 0, 0, None, [1, 10]]]]),
        (read_hello, [["e", 5, None, list(stamp())]]),
        (read_hello, {"e": "c"}),
        (read_watermarks, [["e", "c", [0, 1, 2]]]),
        (read_watermarks, [["e", "c", [0, 1], None, True]]),
        (read_watermarks, [["e", "c", [0, 1, "2"], None, True]]),
        (read_watermarks, [["e", "c", [0, 1, 2], [], True]]),
        (read_watermarks, [["e", "c", [0, 1, 2], None, 1]]),
        (read_watermarks, [["e", 5, [0, 1, 2], [0, 1, 2], True]]),
    ],
)
def test_what_is_nearly_right_is_refused(read: Callable[[bytes], Any], value: Any) -> None:
    with pytest.raises(WireError, match="expected"):
        read(pack(value))
