"""People in a black and red frame, and the crops that `crop` makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages import testing
from camgraph.stages.messages import Frame, People, Tensor
from camgraph.stages.people.crop import Crop

SIZE = (320, 240)


def people(*boxes: tuple[float, ...], seq: int = 0, size: tuple[int, int] = SIZE) -> People:
    """People without keypoints; the later ones have the better scores."""
    scores = np.linspace(0.5, 0.9, len(boxes))
    return testing.people(boxes, seq, frame_size=size, scores=scores, keypoints=np.zeros((0, 3)))


def frame(seq: int = 0) -> Frame:
    """Black on the left, red on the right."""
    pixels = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    pixels[:, 160:, 2] = 255
    return Frame(stamp(seq), pixels, *SIZE)


def cropped(folder: Path, items: list[dict[str, Any]], **settings: Any) -> tuple[list[Tensor], dict[Any, int]]:
    """The crops of these items (`frames` and `people`), and the counters of the stage."""
    with opened(Crop, settings, folder=folder, stage="crops") as stage:
        made = feed(stage, items)
        return [item for item in made if isinstance(item, Tensor)], dict(stage.context.counts)
