"""The colours of people's clothes, by which `track` knows again who was hidden.

looks:  {use: add_colours, from: {frames: capture, people: people}}
tracks: {use: track, from: looks}

                  frames ─┐
people (N boxes) ─────────┴─> the same people with `appearance` (N, 144)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from camgraph.pipeline.stage import Ports, Settings, Stage
from camgraph.stages.messages import Frame, People
from camgraph.stages.vision.colours import colours_of_bgr, colours_of_planes


class AddColoursSettings(Settings):
    """There is nothing to set."""


class AddColours(Stage[AddColoursSettings]):
    """Frame and its People -> People with appearance: the colours of trunk and thighs."""

    settings_type = AddColoursSettings
    inputs: ClassVar[Ports] = {"frames": Frame, "people": People}
    outputs = (People,)
    thread_safe = True

    def process(self, items: Sequence[Mapping[str, Any]]) -> Iterable[People]:
        return (self._coloured(item["frames"], item["people"]) for item in items)

    def _coloured(self, frame: Frame, people: People) -> People:
        if frame.format == "yuv420p":
            found = colours_of_planes(frame.planes, people.boxes, people.keypoints)
        else:
            found = colours_of_bgr(frame.pixels, people.boxes, people.keypoints)
        return replace(people, appearance=found)
