"""Epochs of a camera that comes and goes never come twice in a run."""

from __future__ import annotations

from pathlib import Path

from camgraph.stages.video.live.live_camera import EPOCHS_OF_A_LIFE, first_epoch


def test_each_life_has_its_own_epochs_in_any_process(tmp_path: Path) -> None:
    begun = [first_epoch(tmp_path, "front", incarnation) for incarnation in (1, 1, 3, 1)]
    assert begun == [0, EPOCHS_OF_A_LIFE, 2 * EPOCHS_OF_A_LIFE, 3 * EPOCHS_OF_A_LIFE]


def test_cameras_are_counted_apart(tmp_path: Path) -> None:
    assert [first_epoch(tmp_path, camera, 1) for camera in ("front", "yard")] == [0, 0]


def test_where_nothing_can_be_kept_the_process_tells_lives_apart(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    assert [first_epoch(absent, "front", n) for n in (1, 2)] == [0, EPOCHS_OF_A_LIFE]
    (tmp_path / "front.life").write_text("")
    assert first_epoch(tmp_path, "front", 2) == EPOCHS_OF_A_LIFE
