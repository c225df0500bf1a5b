"""How the cameras of a run look as a table."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.monitoring.run_status import CameraStatus
from camgraph.pipeline.supervision.answers import CameraList


def render_cameras(known: CameraList) -> RenderableType:
    """A row for each camera, also those that come and go; below it the reasons for their states, and failed changes.

    The rows are as wide as names and numbers are: texts of any length have lines of their own.
    """
    table = Table(box=None, pad_edge=False)
    for column in ("camera", "state", "fps", "frames", "drops"):
        table.add_column(column, justify="left" if column in ("camera", "state") else "right", no_wrap=True)
    rows = {**{name: CameraStatus(state="") for name in known.coming}, **known.cameras}
    for name, camera in rows.items():
        numbers = (f"{camera.fps:.1f}", str(camera.frames), str(camera.drops))
        table.add_row(*map(Text, (shown(name), shown(_state(name, camera, known)), *numbers)))
    remarks = {name: _remark(name, camera, known) for name, camera in rows.items()}
    remark_lines = (Text(shown(f"{name}: {remark}")) for name, remark in remarks.items() if remark)
    problems = {name: f"{name} was not taken in: {why}" for name, why in known.problems.items()}
    refused = {
        process: f"{process} goes on with its settings of before: {why}" for process, why in known.refused.items()
    }
    return Group(table, *remark_lines, *(Text(shown(line), "bold red") for line in {**problems, **refused}.values()))


def _state(name: str, camera: CameraStatus, known: CameraList) -> str:
    for state, names in (("leaving", known.leaving), ("coming", known.coming), ("paused", known.paused)):
        if name in names:
            return state
    return camera.state


def _remark(name: str, camera: CameraStatus, known: CameraList) -> str:
    remarks = [camera.why or camera.error]
    if name in known.by_command:
        remarks.append("added by command")
    return "; ".join(remark for remark in remarks if remark)
