"""How cost grows: the scenes, the arithmetic on figures made by hand, and one short run of each curve."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from camgraph.tools.lab.benchmarks.cost_curves import growth, hops, page, stage_costs
from camgraph.tools.lab.benchmarks.cost_curves.__main__ import main
from camgraph.tools.lab.benchmarks.cost_curves.hops import Copied, Hop
from camgraph.tools.lab.benchmarks.cost_curves.page import Curves
from camgraph.tools.lab.benchmarks.cost_curves.stage_costs import Line, Point
from camgraph.tools.lab.report_page import marks_of


@pytest.mark.parametrize("people", [0, 1, 37, 100])
def test_all_people_of_the_crowd_are_found_and_no_more(people: int) -> None:
    from camgraph.stages.vision.decoding.formats import Asked, detections_of

    found = detections_of("yolo_pose", [stage_costs.heads(people, 3)[0]], (640, 640), Asked(min_score=0.3, iou=0.5))
    assert len(found.boxes_xyxy) == people


def test_the_crowd_raises_its_hands_and_rules_see_it(tmp_path: Path) -> None:
    line = Line(Point(3, 2), tmp_path / "line")
    spent = line.frames(40)
    line.close()
    assert set(spent) == {"decode and NMS", "track", "rules", "sink_jsonl"}
    # Two times up and down: each of three people begins twice, and ends once or twice.
    assert 9 <= line.point.events <= 12
    assert len((tmp_path / "line" / "events.jsonl").read_text().splitlines()) == line.point.events


def test_rules_are_all_different() -> None:
    whens = [rule["when"] for rule in stage_costs.rules(200)]
    assert len(set(whens)) == 200


def test_points_are_filled_in_round_by_round() -> None:
    points = [Point(1, 1), Point(2, 5)]
    stage_costs.measure(points, 2)
    assert [len(values) for point in points for values in point.rounds.values()] == [2] * 8
    assert all(point.whole_ms > 0 for point in points)


@pytest.mark.processes
def test_a_hop_is_measured_in_real_runs() -> None:
    assert hops.cpu_us("compact", 16, 50) > 0
    assert hops.cpu_us("compact", 16, 50, cameras=2) > 0
    assert hops.cpu_us("compact", 16, 5, pace_ms=1) > 0


def test_each_further_camera_is_told() -> None:
    assert growth.each_more(100.0, 415.0, (1, 64)) == 5.0


def test_tables_have_a_line_for_each_point() -> None:
    points = [Point(n, 10, {"track": [1.0, 2.0, 3.0]}, events=n, frames=2) for n in (0, 10)]
    curves = Curves([], points, [], [Hop("small", 16, [90])], [Copied("p", 200, (0, 300), (10, 20), 5)])
    text = "\n".join(page.lines(curves))
    assert "| 10 | 2.000 | 2.000 | 5.00 |" in text
    assert "| small | 45 |" in text
    assert "| p | 200 | 0, 300 | 10, 20 | 5 |" in text


def test_the_command_writes_its_page_and_its_picture(tmp_path: Path) -> None:
    target = tmp_path / "page.md"
    target.write_text("\n".join(marks_of("benchmarks.cost_curves")) + "\n")
    asked = ["--curve", "people", "--curve", "rules", "--people", "0", "--people", "2", "--rules", "1", "--rules", "3"]
    ran = CliRunner().invoke(main, [*asked, "--rounds", "1", "--report", str(target)], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    text = target.read_text()
    assert "| 2 |" in text
    assert "python -m camgraph.tools.lab.benchmarks.cost_curves --curve people" in text
    assert ("![How cost grows](cost_curves.png)" in text) == (tmp_path / "cost_curves.png").is_file()
