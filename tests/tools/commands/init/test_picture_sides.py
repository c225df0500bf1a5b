"""The size of the model's picture, by the pictures of a camera that was tried."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from camgraph.stages.video import examiner
from camgraph.stages.video.inspection import MEMORY_MB
from camgraph.tools.commands.init.picture_sides import larger_sides
from camgraph.tools.commands.watching.size import choose_sides

pytestmark = pytest.mark.slow


def test_far_away_people_get_a_larger_picture(pulled_model: Path, short_clip: Path) -> None:
    said: list[str] = []
    pictures = {"yard": examiner.frames(short_clip, 3, MEMORY_MB), "room": [np.zeros((96, 160, 3), np.uint8)] * 3}
    assert larger_sides(pulled_model, pictures, said.append) == {"yard": 768}
    assert said[0].endswith("...")
    assert "yard: people are far away" in said[1]
    assert "4.0 times as long" in said[1]
    assert "room: nobody is in it now" in said[2]


def test_who_tries_a_camera_close_to_it_makes_nothing_smaller(pulled_model: Path, test_data: Path) -> None:
    near = examiner.frames(test_data / "videos" / "intel_asl_yes.mkv", 3, MEMORY_MB)
    assert choose_sides(pulled_model, {"room": lambda count: near[:count]})["room"].side == 256
    said: list[str] = []
    assert larger_sides(pulled_model, {"room": near}, said.append) == {}
    assert "close enough" in said[1]


def test_without_the_model_or_pictures_nothing_is_looked_at(tmp_path: Path) -> None:
    picture = [np.zeros((96, 160, 3), np.uint8)]
    assert larger_sides(tmp_path / "none.onnx", {"room": picture}, _never) == {}
    assert larger_sides(tmp_path / "none.onnx", {}, _never) == {}


def test_a_model_that_cannot_be_asked_is_named_as_such(two_people: Path) -> None:
    said: list[str] = []
    assert larger_sides(two_people, {"room": [np.zeros((96, 160, 3), np.uint8)]}, said.append) == {}
    assert "room: the model could not be asked, and this suits most rooms: " in said[1]


def _never(text: str) -> None:
    raise AssertionError(text)
