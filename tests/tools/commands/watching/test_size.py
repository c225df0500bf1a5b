from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.commands.watching.size import SIDES, best_side, choose


@pytest.mark.parametrize(
    ("sums", "side"),
    [
        ([5.8, 5.2, 1.1], 256),
        ([4.2, 4.7, 4.4, 2.0], 384),
        ([4.3, 9.8, 14.8, 17.8, 20.8], 768),
        ([9.6, 10.0, 9.0], 256),
        ([0.0] * 5, 768),
    ],
)
def test_the_smallest_that_is_nearly_as_good(sums: list[float], side: int) -> None:
    assert choose(dict(zip(SIDES, sums, strict=False))) == side


def test_small_people_want_a_large_picture(pulled_model: Path, short_clip: Path) -> None:
    assert best_side(pulled_model, [short_clip]) == 768


def test_large_people_want_a_small_picture(pulled_model: Path, test_data: Path) -> None:
    assert best_side(pulled_model, [test_data / "videos" / "intel_asl_yes.mkv"]) == 256


def test_nobody_to_be_seen_is_no_reason_to_look_less_closely(
    pulled_model: Path, tmp_path: Path, make_clip: Callable[..., Path]
) -> None:
    assert best_side(pulled_model, [make_clip(tmp_path / "a.mp4"), make_clip(tmp_path / "b.mp4")]) == 768
