from __future__ import annotations

import numpy as np

from camgraph.stages.messages import People, Tracks
from camgraph.stages.testing import people, tracks


def test_people_and_tracks_can_be_sent() -> None:
    sent = tracks(
        {7: (10, 20, 50, 140), 9: (200, 20, 240, 140)}, 3, "door", epoch=1, frame_size=(320, 240), scores=[1, 0.5]
    )
    read = Tracks.build(sent.stamp, sent.fields(), sent.arrays())
    assert (read.stamp.seq, read.stamp.camera, read.stamp.epoch, read.frame_size) == (3, "door", 1, (320, 240))
    assert (read.ids.tolist(), read.scores.tolist(), read.skeleton) == ([7, 9], [1.0, 0.5], "coco-17")
    assert read.boxes.tolist() == [[10, 20, 50, 140], [200, 20, 240, 140]]
    assert np.allclose(read.keypoints[0], (30, 80, 0.9))


def test_nobody_and_other_joints_are_people_too() -> None:
    for sent, shape in ((people([]), (0, 17, 3)), (people([(0, 0, 1, 1)] * 2, keypoints=np.zeros((0, 3))), (2, 0, 3))):
        read = People.build(sent.stamp, sent.fields(), sent.arrays())
        assert (read.keypoints.shape, read.keypoints.dtype, len(read)) == (shape, np.float32, shape[0])
