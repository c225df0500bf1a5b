"""Which pictures are believed, after what."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.live.decoder import Trust


def shown(trust: Trust, *numbers: int) -> list[bool]:
    return [trust.believes(number, corrupt=False) for number in numbers]


def test_a_healthy_stream_is_believed() -> None:
    trust = Trust()
    trust.keyframe(0)
    assert shown(trust, 0, 1, 2, 3) == [True] * 4


def test_loss_distrusts_until_next_keyframe() -> None:
    trust = Trust()
    trust.keyframe(0)
    trust.lost(3)
    assert shown(trust, 2, 3, 4, 5) == [True, False, False, False]
    trust.keyframe(6)
    assert shown(trust, 6, 7) == [True, True]


def test_a_keyframe_behind_a_loss_may_be_hit_itself() -> None:
    trust = Trust()
    trust.lost(5)
    trust.keyframe(6)
    assert shown(trust, 6, 7) == [False, False]
    trust.keyframe(9)
    assert shown(trust, 8, 9, 10) == [False, True, True]


def test_a_keyframe_that_cannot_be_decoded_ends_nothing() -> None:
    trust = Trust()
    trust.lost(1)
    trust.keyframe(6)
    trust.damaged(6)
    assert shown(trust, 6, 7) == [False, False]


def test_a_corrupt_picture_is_not_believed_nor_what_follows_it() -> None:
    trust = Trust()
    assert [trust.believes(0, corrupt=True), trust.believes(1, corrupt=False)] == [False, False]
    trust.keyframe(2)
    assert [trust.believes(2, corrupt=True), trust.believes(3, corrupt=False)] == [False, False]


def test_late_pictures_from_before_damage_are_trusted() -> None:
    trust = Trust()
    trust.damaged(4)
    assert shown(trust, 2, 4, 3, 5) == [True, False, True, False]


def test_what_leads_the_keyframe_is_not_believed() -> None:
    trust = Trust()
    trust.lost(4)
    trust.keyframe(6)
    assert shown(trust, 7, 8, 6, 9) == [False, False, True, True]


def test_damage_after_pending_keyframe_counts_anew() -> None:
    trust = Trust()
    trust.lost(1)
    trust.keyframe(4)
    trust.damaged(6)
    assert shown(trust, 4, 5, 6, 7) == [True, True, False, False]
    trust.keyframe(8)
    assert shown(trust, 8, 9) == [True, True]


def test_a_loss_before_the_first_packet_costs_the_first_keyframe() -> None:
    trust = Trust(lost_before=True)
    trust.keyframe(0)
    assert shown(trust, 0, 1) == [False, False]
    trust.keyframe(5)
    assert shown(trust, 5) == [True]


def test_it_holds_little_whatever_comes() -> None:
    """A camera that is damaged in every picture, for months, whose keyframes never come out."""
    trust = Trust()
    for number in range(20_000):
        trust.damaged(number)
        if number % 3 == 0:
            trust.keyframe(number)
        if number % 7 == 0:
            trust.believes(number - 5, corrupt=True)
    assert len(pickle.dumps(trust)) < 20_000


@given(st.lists(st.sampled_from("pppklde"), min_size=1, max_size=60))
def test_it_agrees_with_a_slow_reference(kinds: list[str]) -> None:
    """p: good, k: keyframe, l: a loss with it, d: damaged, e: a keyframe with a loss; pictures come out at once."""
    trust, seen, expected, clean = Trust(), [], [], True
    for number, kind in enumerate(kinds):
        if kind in "le":
            trust.lost(number)
        if kind == "d":
            trust.damaged(number)
        if kind in "ke":
            trust.keyframe(number)
        seen += shown(trust, number)
        near_loss = any(other in "le" for other in kinds[max(0, number - 1) : number + 1])
        clean = (clean or (kind == "k" and not near_loss)) and kind not in "lde"
        expected.append(clean)
    assert seen == expected
