"""How long FFmpeg keeps a picture: measured on a camera of the simulator."""

from __future__ import annotations

from statistics import median

from camgraph.tools.lab.benchmarks.parser_delay import WAYS, ReadSettings, held_ms, report
from camgraph.tools.lab.camera_run import CameraSet


def test_picture_waits_for_next_one_or_timeout() -> None:
    """A fact of FFmpeg that docs/latency.md builds on: one that changes is worth knowing of."""
    with CameraSet(1, 5, (320, 240), None).simulator() as simulator:
        held, let_go = (held_ms(simulator.cameras[0], way, 2) for way in (WAYS[0], WAYS[3]))
    assert len(held) > 5 < len(let_go)
    assert median(held) >= 190
    assert 90 <= median(let_go) < median(held)


def test_the_report_has_a_line_for_each_way() -> None:
    text = report([(5.0, ReadSettings("read so", "tcp"), [100.0, 50.0, 200.0])], "Other processes took nothing.")
    assert "| 5 | 200 | read so | 3 | 100, 200 |" in text
    assert "Other processes took nothing." in text
