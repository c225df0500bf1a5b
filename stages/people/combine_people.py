"""One list of people out of two looks at the same frame: each person once, from the look that shows more of them.

people: {use: combine_people, from: {near: people_near, far: people_far}}

near  whom the smaller picture shows        far  whom the larger one shows        out  everyone, once
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.stage import Counts, Ports, Settings, Stage
from camgraph.stages.messages import People
from camgraph.stages.vision.same_person import best_of_each, wholeness


class CombinePeopleSettings(Settings):
    """It has no settings."""


class CombinePeople(Stage[CombinePeopleSettings]):
    """People of two sizes of the picture -> People.

    A model finds people best at the height it was trained on; where some fill the frame and others are far away, no
    size of the picture fits all. A person that both looks show is taken from the one that shows them whole and certain.
    Raises BadItem `skeletons` if the two looks have other keypoints.
    """

    settings_type = CombinePeopleSettings
    inputs: ClassVar[Ports] = {"near": People, "far": People}
    outputs = (People,)
    counts: ClassVar[Counts] = {
        "dropped.skeletons": "The people that `combine_people` got of the frame have different keypoints."
    }
    thread_safe = True

    def process(self, items: Sequence[Mapping[str, Any]]) -> Iterable[People]:
        return (combined(item["near"], item["far"]) for item in items)


def combined(near: People, far: People) -> People:
    """Each person once, best first."""
    if (near.skeleton, near.keypoints.shape[1]) != (far.skeleton, far.keypoints.shape[1]):
        got = " and ".join(f"{one.skeleton} ({one.keypoints.shape[1]})" for one in (near, far))
        raise BadItem("skeletons", f"the two looks have different keypoints: expected the same, got {got}")
    boxes, scores, keypoints, classes = (
        np.concatenate((getattr(near, name), getattr(far, name)))
        for name in ("boxes", "scores", "keypoints", "classes")
    )
    whole = wholeness(scores, keypoints)
    best = np.arange(len(boxes))
    for kind in np.unique(classes):
        rows = np.flatnonzero(classes == kind)
        best[rows] = rows[best_of_each(boxes[rows], whole[rows], keypoints[rows])]
    rows = np.flatnonzero(best == np.arange(len(boxes)))
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    return People(near.stamp, boxes[rows], scores[rows], keypoints[rows], near.frame_size, classes[rows], near.skeleton)
