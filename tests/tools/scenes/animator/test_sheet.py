import cv2
import numpy as np
from click.testing import CliRunner

from camgraph.tools.scenes.animator.scenes import FRONT, hiding_behind_pillars
from camgraph.tools.scenes.animator.sheet import OVERVIEW, draw_overview, draw_scene, main


def test_a_sheet_is_drawn_for_a_motion(tmp_path):
    outcome = CliRunner().invoke(main, [str(tmp_path / "sheets"), "waving"])
    assert outcome.exit_code == 0, outcome.output
    sheet = cv2.imread(str(tmp_path / "sheets" / "waving.png"))
    assert sheet.shape == (720, 1980, 3)
    assert len(np.unique(sheet.reshape(-1, 3), axis=0)) > 50


def test_an_overview_has_a_row_for_each_motion():
    assert draw_overview(OVERVIEW, moments=2, size=(60, 70)).shape == (70 * len(OVERVIEW), 120, 3)


def test_a_scene_is_drawn_with_its_furniture():
    drawn = draw_scene(hiding_behind_pillars(1), FRONT, [1.0, 2.0], columns=2)
    assert drawn.shape == (720, 2560, 3)
    assert (drawn == (120, 110, 90)).all(axis=-1).sum() > 500
