"""The measures of tracking, on stories whose measures are known, and the tracker on a real street."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from stages.vision.tracking import TrackerOptions
from tools.benchmarks.track_accuracy import Labelled, detections, followed, main, measure, read_truth


def frame(*people: tuple[int, float]) -> Labelled:
    """(id, left edge) of people of 20 x 60 pixels."""
    boxes = np.array([[x, 0, x + 20, 60] for _, x in people], np.float64).reshape(-1, 4)
    return np.array([i for i, _ in people], np.int64), boxes


STREET = [frame((1, 0.0), (2, 100.0))] * 10


def test_perfect() -> None:
    result = measure(STREET, STREET)
    assert (result.mota, result.idf1, result.switches, result.fragments) == (1.0, 1.0, 0, 0)


def test_one_switch_half_way() -> None:
    found = [frame((7, 1.0), (8, 99.0))] * 5 + [frame((9, 1.0), (8, 99.0))] * 5
    result = measure(STREET, found)
    assert (result.switches, result.identities) == (1, 3)
    assert result.mota == pytest.approx(1 - 1 / 20)
    assert result.idf1 == pytest.approx(2 * 15 / 40)


def test_missed_false_and_fragments() -> None:
    found = [frame((7, 0.0), (5, 300.0)) if i != 4 else frame() for i in range(10)]
    result = measure(STREET, found)
    assert (result.truths - result.hits, result.found - result.hits) == (11, 9)
    assert (result.switches, result.fragments) == (0, 1)
    assert result.mota == pytest.approx(1 - (11 + 9) / 20)


def test_a_pair_stays_while_it_can() -> None:
    """As CLEAR MOT says: a nearer box does not take a person over from the one that still fits."""
    found = [frame((7, 4.0))] + [frame((7, 4.0), (8, 0.0))] * 4
    assert measure([frame((1, 0.0))] * 5, found).switches == 0


@pytest.fixture(scope="module")
def street(test_data: Path) -> tuple[Path, Path, Path]:
    folder = test_data / "mot" / "TUD-Stadtmitte"
    return folder / "TUD-Stadtmitte.mp4", folder / "gt.txt", test_data / "models" / "multipose_heads.onnx"


def test_real_people_at_five_frames_a_second(street: tuple[Path, Path, Path]) -> None:
    video, truth, model = street
    found = list(detections(video, model, 5))
    result = measure(read_truth(truth, len(found), 5), followed(found, 5.0, TrackerOptions()))
    assert result.truths == 233
    assert result.mota >= 0.65
    assert result.idf1 >= 0.7
    assert result.switches <= 5


def test_the_command_says_it_in_one_line(street: tuple[Path, Path, Path]) -> None:
    video, truth, model = map(str, street)
    result = CliRunner().invoke(main, [video, truth, "--model", model, "--every", "30"], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.output.startswith("frames 6  MOTA 0.")
