"""Which packets are decoded where fewer pictures are wanted than come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.live.skipping import GROUPS_LEARNT, Skipping

MS = 1_000_000


def decoded(skipping: Skipping, kinds: str, *, begin: int = 0, every_ms: int = 40) -> str:
    """Of pictures K (key), P (referred to) and b (disposable), one each 40 ms: those that are decoded."""
    taken = [
        kind
        for n, kind in enumerate(kinds, begin)
        if skipping.decodes(n * every_ms * MS if kind == "K" else None, disposable=kind == "b")
    ]
    return "".join(taken)


GROUP = "K" + "bPb" * 8
"""One second at 25 pictures a second, 9 of which others refer to."""
LEARNING = GROUP * GROUPS_LEARNT


@pytest.mark.parametrize(
    ("max_fps", "expected"),
    [
        (None, GROUP),
        (25, GROUP),
        (9.5, GROUP),
        (8.5, GROUP.replace("b", "")),
        (1.1, GROUP.replace("b", "")),
        (1.0, "K"),
        (0.2, "K"),
    ],
)
def test_no_more_is_decoded_than_is_needed(max_fps: float | None, expected: str) -> None:
    skipping = Skipping(max_fps)
    assert decoded(skipping, LEARNING) == LEARNING
    assert decoded(skipping, GROUP * 3, begin=len(LEARNING)) == expected * 3


def test_longer_gop_is_learnt_at_the_next_keyframe() -> None:
    skipping = Skipping(1.0)
    decoded(skipping, LEARNING)
    longer = "K" + "P" * 49
    assert decoded(skipping, longer * 3, begin=len(LEARNING)) == "K" + longer * 2


def test_without_keyframes_all_is_decoded() -> None:
    assert decoded(Skipping(0.1), "P" * 200) == "P" * 200


@given(st.text("KPb", min_size=1, max_size=120), st.floats(0.1, 30))
def test_what_is_decoded_never_refers_to_what_was_left_out(kinds: str, max_fps: float) -> None:
    skipping, whole = Skipping(max_fps), False
    for n, kind in enumerate("K" + kinds):
        done = skipping.decodes(n * 40 * MS if kind == "K" else None, disposable=kind == "b")
        if kind == "K":
            assert done
            whole = True
        elif done:
            assert whole
        elif kind == "P":
            whole = False
