"""What is encoded comes back the same; what is broken is refused with WireError and nothing else."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from camgraph.pipeline.errors import BadItem, WireError
from camgraph.pipeline.messages import Array, Clock, End, Event, Fields, Message, Stamp
from camgraph.pipeline.shm.mappings import MappedSegment
from camgraph.pipeline.shm.slots import SlotRing
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.wire import (
    MAX_BODY,
    build,
    encode,
    new_arrays,
    pack,
    read_arrays,
    read_header,
    types_for,
    unpack,
)


@dataclass(frozen=True, eq=False)
class Parcel(Message):
    TYPE: ClassVar[str] = "parcel"
    payload: Mapping[str, Array]
    note: str = ""

    def fields(self) -> Fields:
        return {"note": self.note}

    def arrays(self) -> Mapping[str, Array]:
        return self.payload

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        return cls(stamp, arrays, fields["note"])


TYPES = types_for([Parcel, End, Event])


@pytest.fixture
def ring() -> Iterator[SlotRing]:
    ring = SlotRing(f"camgraph-{os.getuid()}-test{os.getpid()}-wire.1", 4)
    yield ring
    ring.close()


def decode(body: bytes) -> Message:
    header = read_header(body, TYPES)
    mapping = MappedSegment(header.descriptor.segment) if header.descriptor else None
    return build(header, TYPES, read_arrays(header, mapping))


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.sampled_from(["<f4", "|u1", "<i8", "<f2", "|b1"]).flatmap(
            lambda d: npst.arrays(np.dtype(d), npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=12))
        ),
        max_size=4,
    ),
    st.text(max_size=20),
)
def test_arrays_and_fields_come_back(payload: dict[str, Array], note: str) -> None:
    ring = SlotRing(f"camgraph-{os.getuid()}-test{os.getpid()}-wireh.1", 2)
    try:
        sent = Parcel(stamp(7, "front"), payload, note)
        got = decode(encode(sent, ring).body)
        assert isinstance(got, Parcel)
        assert (got.stamp, got.note, set(got.payload)) == (sent.stamp, note, set(payload))
        for name, array in payload.items():
            assert got.payload[name].dtype == array.dtype
            np.testing.assert_array_equal(got.payload[name], array)
    finally:
        ring.close()


def test_a_large_array_travels_in_a_slot_and_arrives_read_only(ring: SlotRing) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (200, 300, 3), np.uint8)
    encoded = encode(Parcel(stamp(), {"pixels": pixels}), ring)
    assert encoded.slot is not None
    assert len(encoded.body) < 300
    got = decode(encoded.body)
    np.testing.assert_array_equal(got.arrays()["pixels"], pixels)
    assert not got.arrays()["pixels"].flags.writeable


def test_what_was_made_in_a_slot_is_not_copied(ring: SlotRing) -> None:
    slot, arrays = new_arrays(ring, {"a": ((100, 100), "<f4"), "b": ((50_000,), "|u1")})
    arrays["a"][:] = 3
    arrays["b"][:] = 4
    encoded = encode(Parcel(stamp(), arrays), ring)
    assert encoded.slot is slot
    assert ring.in_use == 1
    assert slot.references == 2
    got = decode(encoded.body).arrays()
    assert (got["a"] == 3).all()
    assert (got["b"] == 4).all()


def test_an_unknown_type_or_version_is_refused() -> None:
    body = pack(["parcel", 2, stamp(), {"note": ""}, None, []])
    with pytest.raises(WireError, match="version 2"):
        read_header(body, TYPES)
    with pytest.raises(WireError, match="'letter'"):
        read_header(pack(["letter", 1, stamp(), {}, None, []]), TYPES)


@pytest.mark.parametrize("clock", ["sundial", 7, None, ["ntp"]])
def test_a_clock_that_is_none_is_refused(clock: object) -> None:
    with pytest.raises(WireError):
        read_header(pack(["parcel", 1, [*stamp()[:-1], clock], {"note": ""}, None, []]), TYPES)


@pytest.mark.parametrize("clock", ["", "ntp", "wall", "file"])
def test_a_frame_says_what_its_times_are(clock: Clock) -> None:
    sent = stamp()._replace(clock=clock)
    assert read_header(pack(["parcel", 1, sent, {"note": ""}, None, []]), TYPES).stamp.clock == clock


@pytest.mark.parametrize(
    "row",
    [
        ["a", "<f4", [3], b"\0" * 11],
        ["a", "|O8", [1], b"\0" * 8],
        ["a", "<f4", [-1], b""],
        ["a", "<f4", [1 << 40, 1 << 40], b""],
        ["a", "<f4", [1] * 9, b"\0" * 4],
        ["a", "<f4", [4], 0],
        ["a", "<f4"],
        ["a", "<f4", ["x"], b""],
        "nonsense",
    ],
)
def test_an_array_that_does_not_add_up_is_refused(row: Any) -> None:
    header = read_header(pack(["parcel", 1, stamp(), {"note": ""}, None, [row]]), TYPES)
    with pytest.raises(WireError):
        read_arrays(header, None)


def test_an_array_outside_of_its_slot_is_refused(ring: SlotRing) -> None:
    slot, _ = new_arrays(ring, {"a": ((100,), "|u1")})
    body = pack(["parcel", 1, stamp(), {"note": ""}, slot.descriptor, [["a", "|u1", [100], slot.segment.stride - 50]]])
    header = read_header(body, TYPES)
    with pytest.raises(WireError, match="outside"):
        read_arrays(header, MappedSegment(slot.segment.name))


def test_packing_keeps_and_takes_little_memory() -> None:
    large, taken = bytes(2 << 20), []
    tracemalloc.start()
    try:
        for size in (10, len(large), 10, 10):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            assert unpack(pack([large[:size]])) == [large[:size]]
            now, peak = tracemalloc.get_traced_memory()
            taken.append((now - before, peak - before))
    finally:
        tracemalloc.stop()
    assert taken[1][0] < 100_000, "the buffer of a large message is not kept"
    assert taken[3][1] < 8_000, "one buffer serves many messages"


def test_a_value_that_cannot_be_packed_leaves_nothing_behind() -> None:
    with pytest.raises(TypeError):
        pack(["begun", object()])
    assert unpack(pack(["whole"])) == ["whole"]


def test_threads_pack_side_by_side() -> None:
    with ThreadPoolExecutor(4) as pool:
        values = [[n, ["x" * (n % 300)] * 20] for n in range(2000)]
        assert [unpack(data) for data in pool.map(pack, values)] == values


def test_the_name_of_a_file_that_is_no_utf8_travels() -> None:
    name = os.fsdecode(b"caf\xe9/b\xff.mp4")
    assert unpack(pack({"path": name})) == {"path": name}


@given(st.binary(max_size=200))
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        decode(data)


@given(
    st.recursive(st.none() | st.integers(-5, 5) | st.text(max_size=3), lambda x: st.lists(x, max_size=7), max_leaves=20)
)
def test_well_formed_nonsense_is_refused(value: Any) -> None:
    with pytest.raises(WireError):
        decode(pack(value))


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(WireError, match="field"):
        decode(pack(["event", 2, stamp(), {"id": "x"}, None, []]))


@dataclass(frozen=True, eq=False)
class Buggy(Message):
    TYPE: ClassVar[str] = "buggy"

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        raise RuntimeError("oh")


def test_a_bug_in_a_message_class_is_told_with_its_place() -> None:
    body = pack(["buggy", 1, stamp(), {}, None, []])
    with pytest.raises(WireError, match=r"Buggy.build does not take: RuntimeError.*\(test_wire.py, line \d+\).*a bug"):
        build(read_header(body, types_for([Buggy])), types_for([Buggy]), {})


def test_a_message_over_the_bound_is_refused() -> None:
    with pytest.raises(WireError, match="at most"):
        unpack(b"\0" * (5 << 20))


def test_a_message_that_is_too_large_is_named_with_its_size(ring: SlotRing) -> None:
    body = bytes(MAX_BODY)
    with pytest.raises(BadItem, match=rf"a message of type event with \d+ bytes; at most {MAX_BODY} can be sent"):
        encode(Event(stamp(1), "e1", "i1", "single", body), ring)
