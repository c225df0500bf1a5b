"""The pure parts of a camera: faults as text, disturbances, time, pictures, clips."""

from __future__ import annotations

import random
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from camgraph.pipeline.errors import UserError
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, Fault, ScheduledFault, parse_fault
from camgraph.tools.scenes.simulator.clip import load_clip
from camgraph.tools.scenes.simulator.disturbance import disturbance
from camgraph.tools.scenes.simulator.pattern import number_of, picture
from camgraph.tools.scenes.simulator.timeline import SECOND_NS, Timeline, ticks_of

SMALL = ClipSettings(width=320, seconds=0.5)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("stall@5", ScheduledFault(fault=Fault(name="stall"), at_s=5)),
        ("drop:5@10+20", ScheduledFault(fault=Fault(name="drop", value="5"), at_s=10, for_s=20)),
        ("cam2=jump:-3600@0.5", ScheduledFault(fault=Fault(name="jump", value="-3600"), camera="cam2", at_s=0.5)),
        ("resize:320x180@1", ScheduledFault(fault=Fault(name="resize", value="320x180"), at_s=1)),
    ],
)
def test_faults_can_be_written(text: str, fault: ScheduledFault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stall", "expected [CAMERA=]NAME[:ARG]@SECONDS[+DURATION], such as drop:5@10+20"),
        ("stal@5", "there is no fault `stal`; there are refuse, silence"),
        ("drop@5", "drop: expected PERCENT from 0 to 100, got ``"),
        ("drop:101@5", "drop: expected PERCENT from 0 to 100, got `101`"),
        ("stall:3@5", "stall: expected no argument, got `3`"),
        ("answer:402@5", "answer: expected 401|404|503, got `402`"),
        ("resize:320x181@5", "resize: expected WIDTHxHEIGHT, got `320x181`"),
        ("stall@5+0", "greater than 0"),
    ],
)
def test_what_is_no_fault_is_said(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        parse_fault(text)
    assert message in str(error.value)
    assert str(error.value).startswith(f"--fault {text}: ")


def test_only_what_meets_a_client_can_wait_for_its_packets() -> None:
    with pytest.raises(ValidationError, match="refuse: it cannot wait for packets or frames"):
        Fault(name="refuse", after_packets=3)


def test_a_fault_leaves_so_many_packets() -> None:
    assert Fault(name="stall").packets_left(7, 1) == 0
    assert [Fault(name="stall", after_packets=10).packets_left(n, 1) for n in (0, 7, 10, 11)] == [10, 3, 0, 0]
    assert [Fault(name="stall", after_frames=3).packets_left(9, n) for n in (2, 3)] == [float("inf"), 0]


packets = st.lists(st.lists(st.binary(min_size=13, max_size=40), max_size=6), max_size=30)


@given(packets, st.integers(0, 100), st.integers())
def test_drop_takes_away_and_nothing_else(rounds: list[list[bytes]], percent: int, seed: int) -> None:
    first, second = (disturbance("drop", percent, seed) for _ in range(2))
    for sent in rounds:
        left = first(sent)
        assert left == second(sent)
        rest = iter(sent)
        assert all(packet in rest for packet in left)


@given(st.integers(1, 80), st.integers(0, 100), st.integers())
def test_reorder_brings_each_packet_once_and_not_too_late(count: int, percent: int, seed: int) -> None:
    reorder = disturbance("reorder", percent / 2, seed)
    numbers = random.Random(seed)
    sent = [number.to_bytes(4, "big") for number in range(count)]
    got: list[bytes] = []
    while sent:
        take = numbers.randint(1, 5)
        got += reorder(sent[:take])
        sent = sent[take:]
    arrived = [int.from_bytes(packet, "big") for packet in got]
    assert len(set(arrived)) == len(arrived)
    # What comes in time is behind nothing later; what comes late is behind four of these at most.
    in_time = [number for number, most in zip(arrived, accumulate(arrived, max), strict=True) if number == most]
    for place, number in enumerate(arrived):
        assert sum(later > number for later in set(in_time) & set(arrived[:place])) <= 4


@given(packets, st.integers(0, 100), st.integers())
def test_corrupt_changes_bytes_behind_the_header_only(rounds: list[list[bytes]], percent: int, seed: int) -> None:
    corrupt = disturbance("corrupt", percent, seed)
    for sent in rounds:
        got = corrupt(sent)
        assert [(len(one), one[:12]) for one in got] == [(len(one), one[:12]) for one in sent]


@pytest.mark.parametrize("kind", ["drop", "corrupt", "reorder"])
def test_a_disturbance_of_nothing_does_nothing(kind: str) -> None:
    sent = [bytes([number]) * 20 for number in range(200)]
    assert disturbance(kind, 0, 1)(sent) == sent  # type: ignore[arg-type]


@pytest.mark.parametrize("percent", [1, 5, 20])
def test_a_disturbance_meets_its_share(percent: int) -> None:
    left = disturbance("drop", percent, 1)([b""] * 20_000)
    assert abs(100 * (1 - len(left) / 20_000) - percent) < 0.15 * percent + 0.1


@given(st.integers(0, 65_535), st.integers(64, 400), st.integers(64, 300))
def test_a_picture_tells_its_number(number: int, width: int, height: int) -> None:
    made = picture(number, width, height)
    assert made.shape == (height, width)
    assert number_of(made) == number


def test_a_damaged_picture_tells_none() -> None:
    made = picture(5, 320, 180)
    made[:22, 300:] = 128
    assert number_of(made) is None
    assert number_of(np.full((180, 320), 128, np.uint8)) is None


@pytest.mark.parametrize("codec", ["h264", "h265"])
@pytest.mark.parametrize("b_frames", [0, 2])
def test_time_stamps_go_on_from_round_to_round(codec: str, b_frames: int) -> None:
    clip = load_clip(SMALL.model_copy(update={"codec": codec, "b_frames": b_frames, "seconds": 1.0}))
    timeline = Timeline(clip, 5 * SECOND_NS)
    dues = [timeline.take() for _ in range(3 * len(clip.frames))]
    assert [due.due_ns for due in dues] == [5 * SECOND_NS + 40_000_000 * n for n in range(len(dues))]
    assert all(due.caught_ns <= due.due_ns for due in dues)
    captured = sorted(due.caught_ns for due in dues)
    assert {later - earlier for earlier, later in pairwise(captured)} == {40_000_000}
    assert dues[0].frame.keyframe
    assert clip.delay == (2 if b_frames else 0)


def test_timestamps_are_unique_across_clips() -> None:
    plain, with_b = load_clip(SMALL), load_clip(SMALL.model_copy(update={"b_frames": 2}))
    first = Timeline(plain, 0)
    dues = [first.take() for _ in range(7)]
    second = first.followed_by(with_b)
    dues += [second.take() for _ in range(10)]
    third = second.followed_by(plain)
    dues += [third.take() for _ in range(3)]
    stamps = [due.caught_ns for due in dues]
    assert len(set(stamps)) == len(stamps)
    assert max(stamps[:7]) < min(stamps[7:17])


def test_a_second_is_ninety_thousand_ticks() -> None:
    assert [ticks_of(n * SECOND_NS // 30) for n in (-30, 1, 30)] == [-90_000, 3000, 90_000]


def test_the_same_settings_make_the_same_bytes() -> None:
    assert load_clip(SMALL) == load_clip(SMALL)


def test_a_keyframe_carries_its_parameters() -> None:
    clip = load_clip(SMALL)
    assert clip.frames[0].payloads[: len(clip.parameter_sets)] == clip.parameter_sets


def test_password_is_in_the_url_but_not_in_repr() -> None:
    settings = CameraSettings(name="a", auth="digest", user="me", password="p/#@")
    assert settings.url(8554) == "rtsp://me:p%2F%23%40@127.0.0.1:8554/a"
    assert "p/#@" not in repr(settings)
