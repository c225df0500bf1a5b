"""Labels on tracks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages import testing
from camgraph.stages.messages import Labels, Tracks
from camgraph.stages.people.add_labels import AddLabels

NAN = float("nan")


def tracks(seq: int, ids: Sequence[int], **labels: Any) -> Tracks:
    return replace(testing.tracks(dict.fromkeys(ids, (0, 0, 0, 0)), seq, frame_size=(64, 48)), **labels)


def labels(seq: int, scores: Mapping[int, Sequence[float]], names: tuple[str, ...] = ("walk", "run")) -> Labels:
    rows = np.array(list(scores.values()), np.float32).reshape(-1, len(names))
    return Labels(stamp(seq), rows, names, np.array(list(scores), np.int64))


def labelled(pairs: Sequence[tuple[Tracks, Labels]], folder: Path, **settings: Any) -> list[Tracks]:
    with opened(AddLabels, settings, folder=folder) as stage:
        made = feed(stage, [{"tracks": one, "labels": other} for one, other in pairs])
    found = [one for one in made if isinstance(one, Tracks)]
    again = [Tracks.build(one.stamp, one.fields(), one.arrays()) for one in found]
    assert [one.label_names for one in again] == [one.label_names for one in found]
    return again


def test_each_person_has_the_labels_that_came_last(tmp_path: Path) -> None:
    made = labelled(
        [
            (tracks(0, [7, 8]), labels(0, {1: [0.25, 0.75]})),
            (tracks(1, [8, 7]), labels(1, {})),
            (tracks(2, [8, 7]), labels(2, {0: [0.5, 0.5], 1: [1, 0], 9: [1, 1], -1: [1, 1]})),
        ],
        tmp_path,
    )
    assert [one.label_names for one in made] == [("walk", "run")] * 3
    np.testing.assert_array_equal(made[0].label_scores, [[NAN, NAN], [0.25, 0.75]])
    np.testing.assert_array_equal(made[1].label_scores, [[0.25, 0.75], [NAN, NAN]])
    np.testing.assert_array_equal(made[2].label_scores, [[0.5, 0.5], [1, 0]])


def test_old_labels_are_forgotten(tmp_path: Path) -> None:
    pairs = [(tracks(seq, [7]), labels(seq, {0: [1, 0]} if seq == 0 else {})) for seq in range(8)]
    made = labelled(pairs, tmp_path, hold_s=0.5)
    assert [bool(np.isfinite(one.label_scores).all()) for one in made] == [True] * 6 + [False] * 2


def test_labels_of_two_classifiers_stand_side_by_side(tmp_path: Path) -> None:
    first = tracks(0, [7], label_names=("helmet", "run"), label_scores=np.array([[0.5, 0.1]], np.float32))
    [made] = labelled([(first, labels(0, {0: [0.25, 0.75]}))], tmp_path)
    assert made.label_names == ("helmet", "walk", "run")
    assert made.label_scores.tolist() == [[0.5, 0.25, 0.75]]


def test_nobody_has_no_labels(tmp_path: Path) -> None:
    [made] = labelled([(tracks(0, []), labels(0, {}))], tmp_path)
    assert made.label_scores.shape == (0, 2)
