"""Somebody who stands still, as the tracker would tell of them: for stages that judge people, without any picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import Field

from camgraph.pipeline.errors import NeedsNewProcess
from camgraph.pipeline.stage import Settings, Stage
from camgraph.stages.messages import Tracks
from camgraph_test_stages.messages import Number

SIZE = (400, 300)


class StandingSettings(Settings):
    x: float = Field(100.0, description="Where the middle of the feet is, in pixels")
    to_and_fro: int = Field(
        0, ge=0, description="After so many frames each, they are 100 pixels to the right, and back"
    )
    stubborn: bool = Field(False, description="Takes no other settings while it lives")


class Standing(Stage[StandingSettings]):
    """Number -> Tracks: one person, 20 x 60 pixels, in every frame."""

    settings_type = StandingSettings
    inputs = Number
    outputs = (Tracks,)
    takes_settings = True

    def change_settings(self, settings: StandingSettings) -> None:
        if settings.stubborn:
            raise NeedsNewProcess("it is stubborn")
        super().change_settings(settings)

    def process(self, items: Sequence[Number]) -> Iterator[Tracks]:
        for item in items:
            frames = self.settings.to_and_fro
            x = self.settings.x + (100 * (item.stamp.seq // frames % 2) if frames else 0)
            box = np.array([[x - 10, 140, x + 10, 200]], np.float32)
            joints = np.full((1, 17, 3), (x, 150, 0.9), np.float32)
            ids = np.array([7], np.int64)
            yield Tracks(
                item.stamp, box, np.full(1, 0.9, np.float32), joints, SIZE, np.zeros(1, np.int64), "coco-17", ids
            )
