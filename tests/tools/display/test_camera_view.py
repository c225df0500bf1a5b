from __future__ import annotations

import io

from rich.console import Console

from camgraph.pipeline.monitoring.run_status import CameraStatus
from camgraph.pipeline.supervision.answers import CameraList
from camgraph.tools.display.camera_view import render_cameras


def shown(known: CameraList) -> list[str]:
    """As a pipe gets it: without a limit of its width."""
    out = io.StringIO()
    Console(file=out, width=100_000).print(render_cameras(known))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_rows_stay_narrow_whatever_there_is_to_say() -> None:
    why = "connection refused by 10.0.0.11:554: is the camera on, is it another address? " * 3
    cameras = {
        "front": CameraStatus("lost", why, frames=120, drops=3),
        "yard": CameraStatus("live", fps=9.96, frames=7),
        "gate": CameraStatus("live"),
    }
    lines = shown(CameraList(cameras=cameras, by_command=["gate"], coming=["attic"]))
    assert lines[0].split() == ["camera", "state", "fps", "frames", "drops"]
    assert lines[1].split() == ["attic", "coming", "0.0", "0", "0"]
    assert lines[2].split() == ["front", "lost", "0.0", "120", "3"]
    assert lines[3].split() == ["yard", "live", "10.0", "7", "0"]
    assert max(map(len, lines[:5])) <= 60
    assert lines[5] == f"front: {why}".rstrip()
    assert lines[6] == "gate: added by command"
