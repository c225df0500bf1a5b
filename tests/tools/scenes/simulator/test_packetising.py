"""NAL units to RTP payloads and back: what a receiver puts together again is what went in."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.tools.scenes.simulator.clip import payloads_of
from camgraph.tools.scenes.simulator.nal import (
    Codec,
    is_padding,
    is_parameter_set,
    layout_of,
    nal_type,
    split_annexb,
    split_sized,
)

SPS, PPS = b"\x67\x4d\x40\x1f\x01", b"\x68\xee\x3c"


def reassembled(codec: Codec, payloads: Iterable[bytes]) -> list[bytes]:
    """A receiver by the book: RFC 6184 5.8 and RFC 7798 4.4.3."""
    nals: list[bytes] = []
    for payload in payloads:
        if codec == "h264" and payload[0] & 31 == 28:
            header, rest = bytes([payload[0] & 0xE0 | payload[1] & 31]), payload[2:]
            begins = payload[1] & 0x80
        elif codec == "h265" and payload[0] >> 1 & 63 == 49:
            header, rest = bytes([payload[0] & 0x81 | (payload[2] & 63) << 1, payload[1]]), payload[3:]
            begins = payload[2] & 0x80
        else:
            nals.append(payload)
            continue
        if begins:
            nals.append(header)
        nals[-1] += rest
    return nals


@st.composite
def pictures(draw: st.DrawFn) -> tuple[Codec, list[bytes]]:
    """NAL units of types that are no fragments or aggregates themselves, with the forbidden bit off."""
    codec: Codec = draw(st.sampled_from(["h264", "h265"]))
    bodies = draw(st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=5))
    kinds = [draw(st.integers(1, 23 if codec == "h264" else 47)) for _ in bodies]
    if codec == "h264":
        heads = [bytes([draw(st.integers(0, 3)) << 5 | kind]) for kind in kinds]
    else:
        heads = [bytes([kind << 1, draw(st.integers(1, 7))]) for kind in kinds]
    return codec, [head + body for head, body in zip(heads, bodies, strict=True)]


@given(picture=pictures(), max_payload=st.integers(8, 120))
def test_what_is_split_can_be_put_together(picture: tuple[Codec, list[bytes]], max_payload: int) -> None:
    codec, nals = picture
    payloads = payloads_of(codec, nals, max_payload)
    assert reassembled(codec, payloads) == nals
    assert max(map(len, payloads)) <= max_payload


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_fragments_say_where_they_begin_and_end(codec: Codec) -> None:
    payloads = payloads_of(codec, [bytes([0x26, 1]) + bytes(100)], 40)
    marks = [payload[1 if codec == "h264" else 2] >> 6 for payload in payloads]
    assert marks == [2, 0, 1]


def test_a_nal_that_just_fits_is_sent_whole() -> None:
    assert payloads_of("h264", [b"\x65" + bytes(9)], 10) == (b"\x65" + bytes(9),)
    assert len(payloads_of("h264", [b"\x65" + bytes(10)], 10)) == 2


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=6), st.sampled_from([1, 2, 4]))
def test_lengths_take_a_picture_apart(nals: list[bytes], size_bytes: int) -> None:
    unit = b"".join(len(nal).to_bytes(size_bytes, "big") + nal for nal in nals)
    assert split_sized(unit, size_bytes) == nals


def test_a_length_beyond_the_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="ends at byte 14 of 6"):
        split_sized(b"\x00\x00\x00\x0a12", 4)


def test_start_codes_of_both_lengths_take_a_picture_apart() -> None:
    assert split_annexb(b"\x00\x00\x00\x01" + SPS + b"\x00\x00\x01" + PPS + b"\x00\x00") == [SPS, PPS]


def test_mp4_record_gives_layout_and_parameters() -> None:
    record = b"\x01\x4d\x40\x1f\xff\xe1\x00\x05" + SPS + b"\x01\x00\x03" + PPS
    split, sets = layout_of("h264", record)
    assert sets == (SPS, PPS)
    assert split(b"\x00\x00\x00\x02\x65\x01") == [b"\x65\x01"]


def test_the_record_of_h265_holds_arrays_of_parameters() -> None:
    vps, sps, sei = b"\x40\x01\x0c", b"\x42\x01\x01", b"\x4e\x01\x05"
    arrays = b"".join(bytes([nal[0] >> 1, 0, 1, 0, len(nal)]) + nal for nal in (vps, sps, sei))
    split, sets = layout_of("h265", bytes(21) + b"\xf1\x03" + arrays)
    assert sets == (vps, sps)
    assert split(b"\x00\x02\x26\x01") == [b"\x26\x01"]


def test_types_are_told_apart() -> None:
    assert (nal_type("h264", SPS), nal_type("h265", b"\x42\x01")) == (7, 33)
    assert is_parameter_set("h264", PPS)
    assert not is_parameter_set("h264", b"\x65")
    assert is_padding("h264", b"\x09\x10")
    assert is_padding("h265", b"\x46\x01")
