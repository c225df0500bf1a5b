"""The ring of packets: from keyframe to keyframe, bounded, and never two streams in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.sinks.footage.ring import Ring
from camgraph.stages.video.packets import Packet, VideoStreamInfo

STREAM = VideoStreamInfo("h264", b"sample", 64, 48, Fraction(1, 10), 0, False)
GROUP = 5


def packets(count: int, stream: VideoStreamInfo = STREAM, size: int = 10) -> list[Packet]:
    """Ten a second, every fifth a keyframe."""
    return [Packet(stream, n, n, 1, n % GROUP == 0, bytes(size)) for n in range(count)]


def filled(made: Sequence[Packet], seconds: float = 1.0, most_bytes: int = 1 << 20) -> Ring:
    ring = Ring(seconds, most_bytes)
    for packet in made:
        ring.add(packet)
    return ring


@given(st.integers(1, 80), st.integers(0, 80), st.floats(0.1, 5.0))
def test_it_holds_whole_groups_and_at_least_its_seconds(count: int, wanted: int, seconds: float) -> None:
    ring = filled(packets(count), seconds)
    kept = ring.since(0, min(wanted, count - 1))
    assert kept[0].is_key
    assert [packet.pts for packet in kept] == list(range(kept[0].pts, count))
    if min(wanted, count - 1) >= count - 1 - int(seconds * 10):
        assert kept[0].pts <= min(wanted, count - 1), "its seconds are there"
    everything = ring.since(0, 0)
    assert len(everything) <= int(seconds * 10) + 2 * GROUP


def test_its_bytes_are_bounded_to_a_group() -> None:
    ring = filled(packets(100, size=100), seconds=100.0, most_bytes=2000)
    assert ring.bytes <= 2000
    assert ring.bytes == sum(len(packet.data) for packet in ring.since(0, 0))


def test_a_camera_with_a_single_keyframe_does_not_grow_for_ever() -> None:
    made = [replace(packet, is_key=packet.pts in (0, 90)) for packet in packets(100, size=100)]
    ring = Ring(100.0, 2000)
    for packet in made[:90]:
        ring.add(packet)
        assert ring.bytes <= 2000
    assert ring.since(0, 0) == ()
    for packet in made[90:]:
        ring.add(packet)
    assert [packet.pts for packet in ring.since(0, 0)] == list(range(90, 100))


def test_a_picture_comes_with_the_packets_that_it_needs() -> None:
    ring = filled(packets(20), seconds=10.0)
    assert [packet.pts for packet in ring.up_to(0, 12)] == [10, 11, 12]
    assert ring.up_to(0, 25) == (), "it has not come yet"
    assert ring.up_to(1, 12) == (), "of another epoch"


def test_a_leading_picture_needs_the_group_before_its_keyframe() -> None:
    made = packets(10)
    leading = replace(made[6], pts=4, is_key=False)  # behind the keyframe 5, shown before it
    made[4], made[6] = replace(made[4], pts=3), leading
    ring = filled(made, seconds=10.0)
    assert ring.up_to(0, 4)[0].pts == 0


def test_another_stream_begins_anew() -> None:
    ring = filled(packets(20), seconds=10.0)
    other = replace(STREAM, epoch=1)
    ring.add(replace(packets(1)[0], stream=other))
    assert ring.stream == other
    assert len(ring.since(1, 0)) == 1
    assert ring.since(0, 0) == ()


def test_a_file_that_begins_again_begins_anew() -> None:
    ring = filled(packets(20), seconds=10.0)
    ring.add(packets(1)[0])
    assert [packet.pts for packet in ring.since(0, 0)] == [0]


def test_nothing_is_kept_before_a_keyframe() -> None:
    ring = filled(packets(20)[3:5])
    assert ring.stream is None
    assert ring.newest is None
