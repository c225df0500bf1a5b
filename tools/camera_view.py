"""How the cameras of a run look as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from tools.status_view import clean


def render_cameras(known: Mapping[str, Any]) -> RenderableType:
    """The answer to `cameras` (`pipeline.requests`): a row for each camera, also those that come and go."""
    table = Table(box=None, pad_edge=False)
    for column in ("camera", "state", "fps", "frames", "drops", "remark"):
        table.add_column(column, justify="right" if column in ("fps", "frames", "drops") else "left")
    rows = {**known["cameras"], **{name: {} for name in known["coming"] if name not in known["cameras"]}}
    for name, camera in rows.items():
        numbers = (f"{camera.get('fps', 0):.1f}", str(camera.get("frames", 0)), str(camera.get("drops", 0)))
        table.add_row(clean(name), clean(_state(name, camera, known)), *numbers, clean(_remark(name, camera, known)))
    return table


def _state(name: str, camera: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    for state, names in (("leaving", "leaving"), ("coming", "coming"), ("paused", "paused")):
        if name in known[names]:
            return state
    return str(camera.get("state", ""))


def _remark(name: str, camera: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    remarks = [str(camera.get("why") or camera.get("error") or "")]
    if name in known["by_command"]:
        remarks.append("added by command")
    return "; ".join(remark for remark in remarks if remark)
