"""Puts the labels of a classifier onto the people whom they are about, for rules: `label(walking) > 0.7`.

labelled: {use: add_labels, from: {tracks: tracks, labels: kinds}}

tracks  7 8 9   7 8 9   7 8 9     each frame
labels  . 8 .   . . .   7 . .     when the classifier has looked
        . 8 .   . 8 .   7 8 .     what is known of each, until it is `hold_s` old
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from camgraph.pipeline.messages import End
from camgraph.pipeline.stage import Context, Ports, Settings, Stage
from camgraph.stages.messages import Labels, Tracks

F32 = NDArray[np.float32]


class AddLabelsSettings(Settings):
    """How long a label counts."""

    hold_s: float = Field(
        2.0, ge=0, le=600, description="Labels of a person count until newer ones come, and for so many seconds at most"
    )


@dataclass(slots=True)
class _Camera:
    epoch: int
    names: tuple[str, ...]
    known: dict[int, tuple[int, F32]] = field(default_factory=dict)
    """Track -> when it was labelled, and its scores."""


class AddLabels(Stage[AddLabelsSettings]):
    """Tracks and their Labels -> Tracks with labels, those that each person got last."""

    settings_type = AddLabelsSettings
    inputs: ClassVar[Ports] = {"tracks": Tracks, "labels": Labels}
    outputs = (Tracks,)
    stateful = True

    def __init__(self, settings: AddLabelsSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._cameras: dict[str, _Camera] = {}

    def process(self, items: Sequence[Mapping[str, Any]]) -> Iterable[Tracks]:
        return [self._labelled(item["tracks"], item["labels"]) for item in items]

    def finish(self, camera: str, end: End) -> Iterable[Tracks]:
        self._cameras.pop(camera, None)
        return ()

    def _labelled(self, tracks: Tracks, labels: Labels) -> Tracks:
        at = tracks.stamp
        camera = self._cameras.get(at.camera)
        if camera is None or camera.epoch != at.epoch or camera.names != labels.names or at.alone:
            camera = self._cameras[at.camera] = _Camera(at.epoch, labels.names)
        for row, scores in zip(labels.owner.tolist(), labels.scores, strict=True):
            if 0 <= row < len(tracks):
                camera.known[int(tracks.ids[row])] = (at.time_ns, scores.copy())
        oldest_ns = at.time_ns - round(self.settings.hold_s * 1e9)
        camera.known = {track: one for track, one in camera.known.items() if one[0] >= oldest_ns}
        unknown = np.full(len(labels.names), np.nan, np.float32)
        rows = [camera.known.get(track, (0, unknown))[1] for track in tracks.ids.tolist()]
        found = np.array(rows, np.float32).reshape(len(tracks), len(labels.names))
        # Of a name that several classifiers have, the last one counts.
        kept = [i for i, name in enumerate(tracks.label_names) if name not in labels.names]
        names = (*(tracks.label_names[i] for i in kept), *labels.names)
        return replace(
            tracks, label_names=names, label_scores=np.concatenate([tracks.label_scores[:, kept], found], axis=1)
        )
