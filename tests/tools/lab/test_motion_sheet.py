import cv2
import numpy as np
import pytest
from click.testing import CliRunner

from camgraph.tools.lab.motion_sheet import OVERVIEW, draw_overview, main


@pytest.mark.slow
def test_a_sheet_is_drawn_for_a_motion(tmp_path):
    outcome = CliRunner().invoke(main, [str(tmp_path / "sheets"), "waving"])
    assert outcome.exit_code == 0, outcome.output
    sheet = cv2.imread(str(tmp_path / "sheets" / "waving.png"))
    assert sheet.shape == (720, 1980, 3)
    assert len(np.unique(sheet.reshape(-1, 3), axis=0)) > 50


def test_an_overview_has_a_row_for_each_motion():
    assert draw_overview(OVERVIEW, moments=2, size=(60, 70)).shape == (70 * len(OVERVIEW), 120, 3)
