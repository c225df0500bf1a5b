"""Where people spend their time, as files: numbers, pictures, periods, and what a failure costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from pydantic import ValidationError
from tests.stages.rules.test_rules import tracks

from camgraph.pipeline.testing import feed, opened
from camgraph.stages.messages import Tracks
from camgraph.stages.sinks.sink_heatmap import SinkHeatmap, SinkHeatmapSettings

SMALL = {"columns": 4, "rows": 3, "every": "1s"}
"""Cells of 100 x 100 pixels."""


def stands(first: int, last: int, *people: tuple[int, float, float], camera: str = "cam") -> list[Tracks]:
    """Ten frames a second."""
    return [tracks(seq, people, camera) for seq in range(first, last)]


def run(folder: Path, items: Sequence[Tracks], **settings: Any) -> SinkHeatmap:
    with opened(SinkHeatmap, {**SMALL, **settings}, folder=folder) as sink:
        feed(sink, items, end=True)
    return sink


def numbers(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def test_time_is_added_where_the_feet_are(tmp_path: Path) -> None:
    items = [*stands(0, 21, (1, 150, 250)), *stands(21, 31, (1, 150, 250), (2, 350, 50))]
    sink = run(tmp_path, items)
    found = numbers(tmp_path / "heatmaps" / "cam.json")
    assert found["seconds"] == [[0, 0, 0, 1.0], [0, 0, 0, 0], [0, 3.0, 0, 0]]
    assert (found["person_seconds"], found["width"], found["height"]) == (4.0, 400, 300)
    assert (found["from"], found["to"]) == ("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:03.000Z")
    assert [path.name for path in set(sink.context.files)] == ["cam.json"]
    assert sorted(path.name for path in (tmp_path / "heatmaps").iterdir()) == ["cam.json"]


def test_a_pause_of_the_stream_counts_as_one_second_at_most(tmp_path: Path) -> None:
    run(tmp_path, [*stands(0, 2, (1, 50, 50)), *stands(100, 101, (1, 50, 50))])
    assert numbers(tmp_path / "heatmaps" / "cam.json")["person_seconds"] == 1.1


@pytest.mark.parametrize("end", [".csv", ".npy"])
def test_other_formats(tmp_path: Path, end: str) -> None:
    run(tmp_path, stands(0, 11, (1, 150, 250)), path=f"out/{{camera}}{end}")
    path = tmp_path / "out" / f"cam{end}"
    grid = np.load(path) if end == ".npy" else np.loadtxt(path, delimiter=",")
    np.testing.assert_allclose(grid, [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]], rtol=1e-6)


def test_a_picture_over_a_still_of_the_camera(tmp_path: Path) -> None:
    (tmp_path / "stills").mkdir()
    cv2.imwrite(str(tmp_path / "stills" / "cam.png"), np.full((150, 200, 3), (0, 200, 0), np.uint8))
    items = stands(0, 11, (1, 150, 250))
    run(tmp_path, items, picture="{camera}.png", background="stills/{camera}.png")
    drawn = cv2.imread(str(tmp_path / "cam.png"))
    assert drawn is not None
    assert drawn.shape == (150, 200, 3)
    assert drawn[75, 175].tolist() == [0, 200, 0]
    assert drawn[125, 75, 2] > 100  # red
    run(tmp_path, items, picture="plain.png")
    plain = cv2.imread(str(tmp_path / "plain.png"))
    assert plain is not None
    assert plain.shape == (300, 400, 3)


def test_only_those_of_whom_the_condition_is_true_count(tmp_path: Path) -> None:
    zones = {"left": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}
    items = stands(0, 11, (1, 150, 250), (2, 350, 250))
    run(tmp_path, items, who="in left and speed < 0.2h/s or age < 0s", zones=zones)
    found = numbers(tmp_path / "heatmaps" / "cam.json")["seconds"]
    assert found[2][3] == 0
    assert 0 < found[2][1] <= 1.0  # the speed is unknown at first


def test_each_period_has_its_file(tmp_path: Path) -> None:
    run(tmp_path, stands(0, 25, (1, 150, 250)), period="1s")
    found = [numbers(tmp_path / "heatmaps" / name) for name in ("cam.json", "cam.2.json", "cam.3.json")]
    assert [one["person_seconds"] for one in found] == [0.9, 1.0, 0.5]
    assert [one["from"][17:22] for one in found] == ["00.00", "01.00", "02.00"]


def test_time_fades(tmp_path: Path) -> None:
    run(tmp_path, [*stands(0, 11, (1, 150, 250)), *stands(11, 21, (1, 350, 50))], half_life="1s")
    found = numbers(tmp_path / "heatmaps" / "cam.json")["seconds"]
    assert found[2][1] == pytest.approx(found[0][3] / 2, abs=0.002)


def test_a_second_run_leaves_the_files_of_the_first(tmp_path: Path) -> None:
    for _ in range(2):
        run(tmp_path, stands(0, 11, (1, 150, 250)))
    assert numbers(tmp_path / "heatmaps" / "cam.2.json")["person_seconds"] == 1.0
    run(tmp_path, stands(0, 6, (1, 150, 250)), overwrite=True)
    found = [numbers(tmp_path / "heatmaps" / name)["person_seconds"] for name in ("cam.json", "cam.2.json")]
    assert found == [0.5, 1.0]


def test_a_process_goes_on_with_the_last_written_state(tmp_path: Path) -> None:
    with opened(SinkHeatmap, SMALL, folder=tmp_path) as sink:
        feed(sink, stands(0, 16, (1, 150, 250)))
        sink._maps.clear()  # killed: what was not written is lost
    with opened(SinkHeatmap, SMALL, folder=tmp_path, incarnation=2) as sink:
        feed(sink, stands(9, 31, (1, 150, 250)), end=True)
        assert sink.context.counts["repeated", "cam"] == 2
    assert [path.name for path in (tmp_path / "heatmaps").iterdir()] == ["cam.json"]
    assert numbers(tmp_path / "heatmaps" / "cam.json")["person_seconds"] == 3.0


def test_told_to_overwrite_a_period_spares_those_of_its_run(tmp_path: Path) -> None:
    """Also of a process before this one; what is kept for that does not grow with the files."""
    settings = {**SMALL, "period": "1s", "overwrite": True, "picture": "{camera}.png"}
    for _ in range(2):
        with opened(SinkHeatmap, settings, folder=tmp_path) as sink:
            feed(sink, stands(0, 25, (1, 150, 250)))
            sink._maps.clear()  # killed
        with opened(SinkHeatmap, settings, folder=tmp_path, incarnation=2) as sink:
            feed(sink, stands(25, 45, (1, 150, 250)), end=True)
    assert sorted(path.name for path in (tmp_path / "heatmaps").iterdir()) == [
        "cam.2.json", "cam.3.json", "cam.4.json", "cam.5.json", "cam.json"
    ]  # fmt: skip
    assert len(list(tmp_path.glob("*.png"))) == 5
    kept = numbers(sink.context.state_folder / "heatmaps.0.json")["given"]
    assert [number for _, number in kept.values()] == [5, 5]


def test_names_of_cameras_stay_in_their_folder(tmp_path: Path) -> None:
    names = ["Süd", "..", "вход"]
    with opened(SinkHeatmap, SMALL, folder=tmp_path, cameras=tuple(names)) as sink:
        for name in names:
            feed(sink, stands(0, 11, (1, 150, 250), camera=name), end=True)
    found = {path.parent for path in tmp_path.rglob("*.json") if not path.name.startswith("heatmaps.")}
    assert found == {tmp_path / "heatmaps"}


def test_a_disk_that_fails_is_trouble_and_tried_again(tmp_path: Path) -> None:
    with opened(SinkHeatmap, SMALL, folder=tmp_path) as sink:
        (tmp_path / "heatmaps").rmdir()
        (tmp_path / "heatmaps").touch()
        feed(sink, stands(0, 12, (1, 150, 250)))
        assert "cannot write the heat map" in sink.context.troubles["cam"]
        (tmp_path / "heatmaps").unlink()
        feed(sink, stands(12, 24, (1, 150, 250)))
        assert sink.context.troubles == {}
    assert numbers(tmp_path / "heatmaps" / "cam.json")["person_seconds"] >= 2.0


def test_a_box_that_is_no_number_is_left_out(tmp_path: Path) -> None:
    items = stands(0, 11, (1, 150, 250))
    items[5] = replace(items[5], boxes=np.full((1, 4), np.nan, np.float32))
    run(tmp_path, items)
    assert numbers(tmp_path / "heatmaps" / "cam.json")["person_seconds"] == 0.9


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"path": "a/{camera}.txt"}, "expected an end of .json, .csv, .npy, as in heatmaps/{camera}.json"),
        ({"picture": "a/{camer}.png"}, "there is no {camer}"),
        ({"every": "0.1s"}, "every: expected at least 1s"),
        ({"period": "1h"}, "expected a time such as 2s"),
    ],
)
def test_mistakes_in_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SinkHeatmapSettings.model_validate(settings)
    assert words in str(caught.value)


def test_mistakes_in_the_condition_and_for_cameras(tmp_path: Path) -> None:
    wrong = SinkHeatmapSettings.model_validate({"who": "in lef", "zones": {"left": [[0, 0], [1, 0], [1, 1]]}})
    [(path, text)] = SinkHeatmap.check(wrong, tmp_path)
    assert (path, "did you mean `left`?" in text) == (("who",), True)
    one = SinkHeatmapSettings.model_validate({"path": "heat.json"})
    [(path, text)] = SinkHeatmap.check_cameras(one, tmp_path, {"a": None, "b": None})
    assert (path, "heat.{camera}.json" in text) == (("path",), True)
