"""Drawings of the actions, as text and as pictures."""

from __future__ import annotations

import numpy as np
import pytest

from camgraph.stages.rules.library import library
from camgraph.tools.lab.action_cases import CASES
from camgraph.tools.scenes.animator.action_drawings import as_picture, as_sheet, as_text
from camgraph.tools.scenes.animator.action_scenes import ACTION_SCENES


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


def test_the_moments_of_an_action_differ():
    still = {"standing_still", "loitering", "too_close", "queue"}
    for name, scene in ACTION_SCENES.items():
        drawn = {as_text(scene, columns=12 * n + n) for n in range(1, len(scene.moments_s) + 1)}
        assert name in still or len(drawn) == len(scene.moments_s), name


def test_a_narrow_terminal_shows_the_last_moments():
    scene = ACTION_SCENES["bending"]
    whole, alone = as_text(scene, columns=38), as_text(scene, columns=12)
    assert max(map(len, whole.splitlines())) > 24
    assert max(map(len, alone.splitlines())) <= 12
    assert all(part.strip() in whole for part in alone.splitlines())


def test_terminals_without_braille_get_ascii():
    text = as_text(ACTION_SCENES["hands_up"], columns=80, braille=False)
    assert text.isascii()
    assert len(text.splitlines()) > 8


def test_a_picture_has_a_cell_for_each_moment():
    scene = ACTION_SCENES["fall"]
    assert as_picture("fall", scene, 60).shape == (60, 60 * len(scene.moments_s), 3)
    assert as_sheet({name: ACTION_SCENES[name] for name in ("fall", "waving", "lying")}, 60).shape == (120, 480, 3)
