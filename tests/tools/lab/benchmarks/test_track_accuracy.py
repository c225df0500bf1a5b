"""The measures of tracking, on stories whose measures are known; the sequences; the tracker on a real street."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Tracks
from camgraph.stages.sinks.sink_tracks import SinkTracks
from camgraph.tools.lab.benchmarks.track_accuracy.__main__ import Figures, followed, main, usual_options
from camgraph.tools.lab.benchmarks.track_accuracy.cost import main as cost_main
from camgraph.tools.lab.benchmarks.track_accuracy.measures import Labelled, hota, measure
from camgraph.tools.lab.benchmarks.track_accuracy.peers import NAMES, settings_of
from camgraph.tools.lab.benchmarks.track_accuracy.scenes import SCENES, scene
from camgraph.tools.lab.benchmarks.track_accuracy.score import main as score_main
from camgraph.tools.lab.benchmarks.track_accuracy.sequences import Found, Jitter, Sequence
from camgraph.tools.lab.benchmarks.track_accuracy.street import read_mot, street

pytestmark = pytest.mark.slow


def frame(*people: tuple[int, float]) -> Labelled:
    """(id, left edge) of people of 20 x 60 pixels."""
    boxes = np.array([[x, 0, x + 20, 60] for _, x in people], np.float64).reshape(-1, 4)
    return np.array([i for i, _ in people], np.int64), boxes


STREET = [frame((1, 0.0), (2, 100.0))] * 10


def test_perfect() -> None:
    result = measure(STREET, STREET)
    assert (result.mota, result.idf1, result.switches, result.fragments, result.passed) == (1.0, 1.0, 0, 0, 0)
    assert result.hota == pytest.approx(1.0)


def test_one_switch_half_way() -> None:
    found = [frame((7, 1.0), (8, 99.0))] * 5 + [frame((9, 1.0), (8, 99.0))] * 5
    result = measure(STREET, found)
    assert (result.switches, result.identities, result.passed) == (1, 3, 0)
    assert result.mota == pytest.approx(1 - 1 / 20)
    assert result.idf1 == pytest.approx(2 * 15 / 40)


def test_an_id_that_another_person_gets_is_passed_on() -> None:
    found = [frame((7, 0.0), (8, 100.0))] * 5 + [frame((8, 0.0))] * 5
    result = measure(STREET, found)
    assert (result.passed, result.switches) == (1, 1)


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


def test_hota_of_stories_counted_by_hand() -> None:
    """Exact boxes, so that all thresholds agree: the root of detection times association."""
    halves = [frame((7, 0.0))] * 5 + [frame((9, 0.0))] * 5
    assert hota([frame((1, 0.0))] * 10, halves) == pytest.approx(np.sqrt(1.0 * 0.5))
    assert hota(STREET, [frame((7, 0.0))] * 10) == pytest.approx(np.sqrt(0.5 * 1.0))
    assert hota(STREET, [frame()] * 10) == 0.0
    # An overlap of 18 / 22 passes 16 of the 19 thresholds, 0.05 to 0.8.
    assert hota([frame((1, 0.0))] * 4, [frame((7, 2.0))] * 4) == pytest.approx(16 / 19)


def test_a_rate_takes_the_newest_frame_of_each_time() -> None:
    times = [round(i * 1e9 / 25) for i in range(100)]
    found = [Found(np.empty((0, 4)), np.empty(0), np.empty((0, 17, 3)))] * 100
    whole = Sequence("x", times, [frame()] * 100, found)
    assert whole.at(25).times_ns == times
    assert whole.at(12.5).times_ns == times[::2]
    assert whole.at(8).times_ns[:5] == [times[i] for i in (0, 3, 6, 9, 12)]
    assert len(whole.at(3).times_ns) == 12


def test_jitter_is_seeded_and_seed_0_is_none() -> None:
    one = Found(np.tile([0.0, 0, 20, 60], (50, 1)), np.full(50, 0.5), np.zeros((50, 17, 3)))
    whole = Sequence("x", [0], [frame()], [one])
    assert Jitter().of(whole, 0) is whole
    first, again, other = (Jitter().of(whole, seed).found[0] for seed in (3, 3, 4))
    assert first.boxes.tolist() == again.boxes.tolist()
    assert first.boxes.tolist() != other.boxes.tolist()
    assert len(Jitter(dropped=0.5).of(whole, 1).found[0].boxes) < 40
    assert Jitter(0.0, 0.0, 0.0).of(whole, 1).found[0].boxes.tolist() == one.boxes.tolist()


def test_figures_are_means_of_the_runs() -> None:
    switched = measure(STREET, [frame((7, 1.0), (8, 99.0))] * 5 + [frame((9, 1.0), (8, 99.0))] * 5)
    figures = Figures.of([measure(STREET, STREET), switched])
    assert (figures.idf1, figures.spread, figures.passed) == (pytest.approx(87.5), pytest.approx(12.5), 0)


@pytest.mark.parametrize("name", NAMES)
def test_settings_of_others_are_the_same_each_time(name: str) -> None:
    assert settings_of(name, 5.0, 4) == settings_of(name, 5.0, 4)
    assert len({str(one) for one in settings_of(name, 5.0, 8)}) > 4


@pytest.mark.parametrize("name", SCENES)
def test_scenes_are_repeatable_and_people_keep_their_ids(name: str) -> None:
    one, again = scene(name, 2, 4.0), scene(name, 2, 4.0)
    assert [part.scores.tolist() for part in one.found] == [part.scores.tolist() for part in again.found]
    assert sum(len(ids) for ids, _ in one.truths) > 30
    result = measure(one.truths, followed(one, usual_options()))
    assert result.idf1 > 0.5


def test_the_cost_of_a_frame_is_told() -> None:
    result = CliRunner().invoke(cost_main, ["--people", "3"], catch_exceptions=False)
    assert result.exit_code == 0
    assert re.search(r"\| 3 \| \d+\.\d\d ms \|", result.output)


@pytest.fixture(scope="module")
def tud(test_data: Path) -> Sequence:
    return street(test_data / "mot" / "TUD-Stadtmitte", test_data / "models" / "multipose_heads.onnx")


@pytest.mark.parametrize("fps", [12.5, 5.0])
def test_real_people(tud: Sequence, fps: float) -> None:
    found = []
    for seed in (1, 2, 3):
        case = Jitter().of(tud.at(fps), seed)
        found.append(measure(case.truths, followed(case, usual_options())))
    figures = Figures.of(found)
    assert figures.idf1 >= 80
    assert figures.mota >= 70
    assert figures.passed <= 5


@pytest.mark.slow
def test_tracks_in_a_file_score_as_those_in_memory(tud: Sequence, test_data: Path, tmp_path: Path) -> None:
    """As `sink_tracks` writes them for `track`, with whatever rounding that costs."""
    found = followed(tud, usual_options())
    with opened(SinkTracks, {"path": "{camera}.txt"}, folder=tmp_path) as sink:
        feed(sink, [_tracks(number, *one) for number, one in enumerate(found)])
    again = read_mot(tmp_path / "cam.txt", len(found))
    assert [ids.tolist() for ids, _ in again] == [ids.tolist() for ids, _ in found]
    one, other = measure(tud.truths, found), measure(tud.truths, again)
    assert (other.idf1, other.mota, other.passed) == (one.idf1, one.mota, one.passed)
    assert other.hota == pytest.approx(one.hota, abs=1e-4)
    truth = test_data / "mot" / "TUD-Stadtmitte" / "gt.txt"
    result = CliRunner().invoke(score_main, [str(truth), str(tmp_path / "cam.txt")], catch_exceptions=False)
    assert f"IDF1 {100 * one.idf1:.1f}" in result.output


def _tracks(number: int, ids: np.ndarray, boxes: np.ndarray) -> Tracks:
    count = len(ids)
    scores, joints = np.full(count, 0.5, np.float32), np.zeros((count, 17, 3), np.float32)
    kinds = np.zeros(count, np.int64)
    return Tracks(stamp(number), boxes.astype(np.float32), scores, joints, (640, 480), kinds, "coco-17", ids)


def test_the_command_writes_tables(test_data: Path) -> None:
    options = [
        "--data",
        str(test_data),
        "--rate",
        "3",
        "--seed",
        "2",
        "--jitters",
        "1",
        "--seconds",
        "3",
        "--tries",
        "0",
    ]
    result = CliRunner().invoke(main, options, catch_exceptions=False)
    assert result.exit_code == 0
    assert "| camgraph | " in result.output
    assert "| crowd 2 | IDF1 ± spread | " in result.output
