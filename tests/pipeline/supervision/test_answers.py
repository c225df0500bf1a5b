"""Answers that say something else than runs do are refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.supervision.answers import CameraList, Reloaded


@pytest.mark.parametrize("lie", [{"cameras": []}, {"coming": 7}, {"problems": ["a"]}, {"busy": {}}])
def test_a_false_list_of_cameras_is_refused(lie: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        CameraList.from_json(lie)


def test_a_false_change_is_refused() -> None:
    with pytest.raises(UserError, match="cannot be read"):
        Reloaded.from_json({"added": 7})
