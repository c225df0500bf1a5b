"""Drawings of the actions."""

from __future__ import annotations

import numpy as np
import pytest

from camgraph.stages.rules.library import library
from camgraph.tools.lab.action_cases import CASES
from camgraph.tools.lab.action_drawings import as_picture, as_sheet
from camgraph.tools.lab.action_scenes import ACTION_SCENES


def test_every_action_has_a_scene():
    assert set(library().templates) <= set(ACTION_SCENES)


def test_the_drawn_motion_is_one_in_which_the_action_fires():
    drawn = {name: ACTION_SCENES[name].motion for name in CASES}
    assert {name: motion for name, motion in drawn.items() if motion not in CASES[name].fires} == {}


@pytest.mark.parametrize("name", ACTION_SCENES)
def test_everybody_is_within_the_picture(name):
    scene = ACTION_SCENES[name]
    camera = scene.camera(100)
    for at in scene.moments_s:
        for nodes in scene.people(at):
            pixels, _ = camera.project(nodes)
            assert (np.abs(pixels - 50) < 62).all(), at


@pytest.mark.slow
def test_the_moments_of_an_action_differ():
    still = {"standing_still", "loitering", "too_close", "queue"}
    for name, scene in ACTION_SCENES.items():
        cells = np.split(as_picture("", scene, 60), len(scene.moments_s), axis=1)
        assert name in still or len({cell.tobytes() for cell in cells}) == len(cells), name


def test_a_picture_has_a_cell_for_each_moment():
    scene = ACTION_SCENES["fall"]
    assert as_picture("fall", scene, 60).shape == (60, 60 * len(scene.moments_s), 3)
    assert as_sheet({name: ACTION_SCENES[name] for name in ("fall", "waving", "lying")}, 60).shape == (120, 480, 3)
