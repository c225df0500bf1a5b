"""Pictures of people, cut out of their frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from camgraph_test_stages.crops import SIZE, cropped, frame, people

from camgraph.pipeline.stage import Upstream
from camgraph.stages.messages import Tracks
from camgraph.stages.people.crop import Crop


def test_each_person_has_a_row_and_the_best_come_first(tmp_path: Path) -> None:
    given = {"frames": frame(), "people": people((10, 10, 50, 90), (200, 20, 240, 100), (250, 30, 300, 130))}
    [tensor], counts = cropped(tmp_path, [given], size=[64, 96], max_people=2)
    assert tensor.arrays_by_name["image"].shape == (2, 96, 64, 3)
    assert tensor.owner.tolist() == [2, 1]
    assert (tensor.frame_size, tensor.picture_size, tensor.rows) == (SIZE, (64, 96), 2)
    assert counts == {("skipped.crops", "cam"): 1}
    assert (tensor.arrays_by_name["image"][:, 48, 32] == [255, 0, 0]).all()


def test_nobody_is_a_message_of_no_rows(tmp_path: Path) -> None:
    [tensor], counts = cropped(tmp_path, [{"frames": frame(), "people": people()}])
    assert (tensor.rows, tensor.arrays_by_name["image"].shape, counts) == (0, (0, 192, 192, 3), {})


def test_people_of_whom_the_model_is_not_certain_are_left_out(tmp_path: Path) -> None:
    """Those whom `track` follows are cropped all the same: it knows that they are there."""
    found = people((10, 10, 50, 90), (200, 20, 240, 100), (250, 30, 300, 130))
    found.scores[:] = (0.15, 0.9, 0.35)
    followed = Tracks(**{**vars(found), "ids": np.arange(3, dtype=np.int64)})
    for given, settings, owners in (
        (found, {}, [1, 2]),
        (found, {"min_score": 0.1}, [1, 2, 0]),
        (followed, {}, [1, 2, 0]),
    ):
        [tensor], counts = cropped(tmp_path, [{"frames": frame(), "people": given}], **settings)
        assert (tensor.owner.tolist(), counts) == (owners, {})


def test_the_score_follows_the_model_unless_it_is_written() -> None:
    upstream = Upstream({"decode": {"scores": {"certain": 0.2}}})
    assert Crop.follow(Crop.settings_type(), Path(), upstream) == {"min_score": 0.2}
    assert Crop.follow(Crop.settings_type.model_validate({"min_score": 0.5}), Path(), upstream) == {}
