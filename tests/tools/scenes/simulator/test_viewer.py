"""A viewer with a way to the client that the test holds in its hands."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from camgraph.tools.scenes.simulator import Fault
from camgraph.tools.scenes.simulator.clip import ClipFrame
from camgraph.tools.scenes.simulator.timeline import Due
from camgraph.tools.scenes.simulator.viewer import Identity, Viewer

FRAME_NS = 40_000_000


@dataclass
class Hand:
    """Both the way of the packets and the connection that faults end."""

    loses: bool = False
    congested: bool = False
    packets: list[bytes] = field(default_factory=list)
    reports: list[bytes] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def send(self, packets: Sequence[bytes]) -> None:
        self.packets += packets

    def report(self, packet: bytes) -> None:
        self.reports.append(packet)

    def close(self) -> None:
        self.ended.append("closed")

    def cut(self, how: str) -> None:
        self.ended.append(how)

    def abandon(self) -> None:
        self.ended.append("abandoned")


def due(number: int, keyframe: bool = False) -> Due:
    """A picture of three packets at 25 fps, caught when it is sent."""
    frame = ClipFrame((b"a", b"b", b"c"), 0, keyframe)
    return Due(number, frame, number * FRAME_NS, number * FRAME_NS)


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def viewer(hand: Hand) -> Viewer:
    return Viewer(hand, hand, Identity(9, 65_534, 1000), report_s=0.1)


def test_a_client_begins_at_a_keyframe(viewer: Viewer, hand: Hand) -> None:
    assert not viewer.send(due(0), {}, 0)
    assert viewer.send(due(1, keyframe=True), {}, 0)
    assert viewer.send(due(2), {}, 0)
    heads = [struct.unpack_from("!BBHII", packet) for packet in hand.packets]
    assert [head[2] for head in heads] == [65_534, 65_535, 0, 1, 2, 3]
    assert [head[3] for head in heads] == [1000] * 3 + [4600] * 3
    assert (viewer.packets, viewer.frames, viewer.octets) == (6, 2, 6)


def test_a_client_who_does_not_read_goes_on_at_a_keyframe(viewer: Viewer, hand: Hand) -> None:
    viewer.send(due(0, keyframe=True), {}, 0)
    hand.congested = True
    assert not viewer.send(due(1, keyframe=True), {}, 0)
    hand.congested = False
    assert not viewer.send(due(2), {}, 0)
    assert viewer.send(due(3, keyframe=True), {}, 0)
    assert viewer.frames == 2


def test_reports_keep_their_pace(viewer: Viewer, hand: Hand) -> None:
    for number in range(26):
        viewer.send(due(number, keyframe=True), {}, number * FRAME_NS)
    assert len(hand.reports) == 11
    stamps = [struct.unpack_from("!I", report, 16)[0] for report in hand.reports]
    assert stamps[:4] == [1000, 1000 + 3 * 3600, 1000 + 5 * 3600, 1000 + 8 * 3600]


def test_no_reports_are_sent_where_none_are_wanted(hand: Hand) -> None:
    Viewer(hand, hand, Identity(9, 0, 0), report_s=0).send(due(0, keyframe=True), {}, 0)
    assert hand.reports == []


def test_a_cut_comes_right_behind_its_packet(viewer: Viewer, hand: Hand) -> None:
    faults = {"cut": Fault(name="cut", value="rst", after_packets=4)}
    viewer.send(due(0, keyframe=True), faults, 0)
    assert hand.ended == []
    viewer.send(due(1), faults, 0)
    assert (len(hand.packets), hand.ended) == (4, ["rst"])


def test_of_two_ends_the_earlier_comes(viewer: Viewer, hand: Hand) -> None:
    faults = {
        "stall": Fault(name="stall", after_packets=5),
        "half_open": Fault(name="half_open", after_frames=1),
    }
    viewer.send(due(0, keyframe=True), faults, 0)
    assert (len(hand.packets), hand.ended) == (3, ["abandoned"])


def test_a_jump_comes_once_for_each_fault(viewer: Viewer, hand: Hand) -> None:
    faults = {"jump": Fault(name="jump", value="1", after_frames=1)}
    for number in range(4):
        viewer.send(due(number, keyframe=True), faults, 0)
    stamps = [struct.unpack_from("!BBHI", packet)[3] for packet in hand.packets[::3]]
    assert stamps == [1000, 94_600, 98_200, 101_800]


def test_packets_are_lost_only_where_the_way_loses(viewer: Viewer, hand: Hand) -> None:
    faults = {"drop": Fault(name="drop", value="100")}
    viewer.send(due(0, keyframe=True), faults, 0)
    hand.loses = True
    viewer.send(due(1), faults, 0)
    assert len(hand.packets) == 3
    assert viewer.packets == 6
