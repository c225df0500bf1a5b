"""Pictures to try models on."""

from __future__ import annotations

import numpy as np

from camgraph.stages.vision.sample_pictures import sample_pictures


def test_they_look_a_little_like_frames() -> None:
    pictures = sample_pictures(2, (96, 64)).astype(float)
    assert pictures.shape == (2, 64, 96, 3)
    apart = np.abs(np.diff(pictures, axis=2)).mean()
    assert apart < 0.5 * np.abs(pictures - pictures[:, ::-1, ::-1]).mean()


def test_they_are_the_same_each_time_and_differ_from_each_other() -> None:
    one, two = sample_pictures(2, (40, 30))
    np.testing.assert_array_equal(sample_pictures(1, (40, 30))[0].shape, one.shape)
    np.testing.assert_array_equal(sample_pictures(2, (40, 30)), [one, two])
    assert (one != two).mean() > 0.9
