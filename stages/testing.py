"""People and tracks without a picture and a model, for tests of stages:

    from camgraph.stages.testing import people, tracks

    found = people([(10, 20, 50, 140)], seq=3)
    known = tracks({7: (10, 20, 50, 140), 9: (200, 20, 240, 140)}, seq=3, camera="door")
    assert (len(found), known.ids.tolist(), known.keypoints.shape) == (1, [7, 9], (2, 17, 3))

`dataclasses.replace` gives them further parts, and `camgraph.pipeline.testing` runs a stage with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from camgraph.pipeline.single_stage import stamp
from camgraph.stages.messages import People, Tracks

_JOINTS, _SURE = 17, 0.9
Box = Sequence[float]
"""xyxy, in pixels of the frame."""


def people(boxes: Iterable[Box], seq: int = 0, camera: str = "cam", **more: Any) -> People:
    """The people in these boxes. `more`: as with `tracks`."""
    return People(**_parts(list(boxes), seq, camera, **more))


def tracks(boxes: Mapping[int, Box], seq: int = 0, camera: str = "cam", **more: Any) -> Tracks:
    """People with an identity each: id -> box.

    `more`: `epoch`; `frame_size` (width, height), by default 640 x 480; `scores`, one for all or (N,); `keypoints`
    (N, K, 3) or what can be made so, by default all 17 joints of each in the middle of the box, and sure.
    """
    return Tracks(**_parts(list(boxes.values()), seq, camera, **more), ids=np.array(list(boxes), np.int64))


def _parts(
    boxes: Sequence[Box],
    seq: int,
    camera: str,
    *,
    epoch: int = 0,
    frame_size: tuple[int, int] = (640, 480),
    scores: ArrayLike = _SURE,
    keypoints: ArrayLike | None = None,
) -> dict[str, Any]:
    box, count = np.array(boxes, np.float32).reshape(-1, 4), len(boxes)
    middle = np.dstack([(box[:, None, :2] + box[:, None, 2:]) / 2, np.full((count, 1, 1), _SURE)])
    joints = np.repeat(middle, _JOINTS, axis=1) if keypoints is None else np.asarray(keypoints)
    return {
        "stamp": stamp(seq, camera, epoch=epoch),
        "boxes": box,
        "scores": np.broadcast_to(np.asarray(scores, np.float32), (count,)).copy(),
        "keypoints": np.broadcast_to(joints, (count, *joints.shape[-2:])).astype(np.float32),
        "frame_size": frame_size,
        "classes": np.zeros(count, np.int64),
        "skeleton": f"coco-{_JOINTS}" if joints.shape[-2] == _JOINTS else f"kpts-{joints.shape[-2]}",
    }
