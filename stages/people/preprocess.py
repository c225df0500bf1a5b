"""Makes a model's picture of a frame: resized, padded, RGB, and written straight into the next stage's memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import cv2
import numpy as np
from pydantic import Field, model_validator

from camgraph.pipeline.plan import EVERY_CAMERA
from camgraph.pipeline.stage import FrameSize, Settings, Stage
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.facts import Facts
from camgraph.stages.messages import Frame, Tensor
from camgraph.stages.vision import letterbox
from camgraph.stages.vision.letterbox import Align, Fit, FitName, Size
from camgraph.stages.vision.planes import U8
from camgraph.stages.vision.yuv import bgr_to_rgb, i420_to_rgb, planes_to_rgb

Side = Annotated[int, Field(ge=16, le=8192)]

USUAL_MAX_SIDE = 384
"""For `size: auto` if nothing is known of the frames.

It suits the most clips, near and far: `python -m camgraph.tools.lab.benchmarks.picture_sides`, docs/accuracy.md. Time
grows with the area.
"""
IMAGE = "image"
"""The name of the picture in `Tensor.arrays_by_name`: uint8 RGB (1, H, W, 3)."""


class PreprocessSettings(Settings):
    """How frames become pictures for a model."""

    size: tuple[Side, Side] | Literal["auto", "native"] = Field(
        (640, 640),
        description="Width and height in pixels; by default as the model behind it wants, else 640 x 640; `native`: "
        "the frame's own, padded to the right and below to multiples of 32, for models that take any size; `auto`: "
        "what the model wants, and for one that takes any size the frame's own up to `max_side`, which `camgraph run` "
        "chooses by a look at the files",
    )
    fit: FitName = Field(
        "letterbox",
        description="letterbox: proportions kept, padded; stretch: over all of the size; crop: proportions kept, the "
        "middle of the frame over all of the size, as many classifiers are trained; by default as the model behind it "
        "wants it, else letterbox",
    )
    align: Align = Field(
        "centre",
        description="With `letterbox`: where the frame lies in the padding (corner: the upper left); by default as the "
        "model behind it wants it, else in the centre",
    )
    max_side: Side | Annotated[dict[str, Side], Field(min_length=1)] | None = Field(
        None,
        description="With `native` and `auto`: frames whose longer side exceeds this are made smaller; one number, or "
        "camera -> number with `*` for all others; `auto` takes 384 if nothing is known of the frames. A model "
        "finds best the people that are as tall in its picture as those it was trained on",
    )
    pad: int = Field(114, ge=0, le=255, description="The grey of the padding; by default the model's, else 114")

    @model_validator(mode="before")
    @classmethod
    def _longest_side_alone(cls, values: Any) -> Any:
        """Who writes a `max_side` and no size means the frame's own, up to that."""
        open_ = isinstance(values, dict) and values.get("max_side") is not None and "size" not in values
        return {**values, "size": "auto"} if open_ else values

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.max_side is not None and not isinstance(self.size, str):
            raise ValueError(
                "max_side is for `size: native` and `size: auto`, and this size is fixed: remove one of them"
            )
        return self

    def max_side_of(self, camera: str) -> int | None:
        """The longest side for the frames of a camera; None if nothing is said about it."""
        sides = self.max_side
        return sides.get(camera, sides.get(EVERY_CAMERA)) if isinstance(sides, dict) else sides


class Preprocess(Stage[PreprocessSettings]):
    """Frame -> Tensor of one row, with the `fit` that takes model pixels back to frame pixels.

    The same bits on every machine and for every split of the work: OpenCV runs in this thread alone.
    """

    settings_type = PreprocessSettings
    inputs = Frame
    outputs = (Tensor,)
    only_for_models = True
    thread_safe = True
    adapts = ("size", "fit", "align", "pad")

    @classmethod
    def describe(cls, settings: PreprocessSettings) -> Facts:
        return {"picture": {"size": settings.size}}

    @classmethod
    def remarks(
        cls, settings: PreprocessSettings, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[str]:
        """A side for a camera that the graph does not have. No mistake: cameras may be removed while a run goes on."""
        named = settings.max_side if isinstance(settings.max_side, dict) else {}
        for name in named:
            if name != EVERY_CAMERA and name not in cameras:
                yield f"max_side: no camera of the graph is called `{name}`{did_you_mean(name, cameras)}"

    def open(self) -> None:
        cv2.setNumThreads(1)

    def process(self, items: Sequence[Frame]) -> Iterable[Tensor]:
        return (self._prepare(frame) for frame in items)

    def _prepare(self, frame: Frame) -> Tensor:
        size, fit = self._place((frame.width, frame.height), frame.stamp.camera)
        image = self.context.new_arrays({IMAGE: ((1, size[1], size[0], 3), "uint8")})[IMAGE]
        if self._crops:
            draw_cropped(frame, fit, image[0])
        else:
            draw(frame, fit, image[0], self.settings.pad)
        return Tensor(frame.stamp, {IMAGE: image}, np.array([fit], np.float32), (frame.width, frame.height), size)

    @property
    def _crops(self) -> bool:
        return self.settings.fit == "crop" and not isinstance(self.settings.size, str)

    def _place(self, frame_size: Size, camera: str) -> tuple[Size, Fit]:
        size, most = self.settings.size, self.settings.max_side_of(camera)
        if isinstance(size, str):
            most = USUAL_MAX_SIDE if size == "auto" and most is None else most
            return letterbox.native_size(frame_size, most), letterbox.native(frame_size, most)
        if self.settings.fit == "stretch":
            return size, letterbox.stretch_fit(frame_size, size)
        if self._crops:
            return size, letterbox.crop_fit(frame_size, size)
        return size, letterbox.letterbox_fit(frame_size, size, self.settings.align)


def draw(frame: Frame, fit: Fit, out: U8, pad: int) -> None:
    """Write the frame as RGB into its place in ``out`` (H, W, 3), and ``pad`` around it."""
    width, height = inner = letterbox.inner_size((frame.width, frame.height), fit)
    left, top = int(fit.pad_x), int(fit.pad_y)
    out[:top], out[top + height :] = pad, pad
    rows = out[top : top + height]
    rows[:, :left], rows[:, left + width :] = pad, pad
    place = rows[:, left : left + width]
    if frame.format != "yuv420p":
        bgr_to_rgb(frame.pixels, inner, place)
    elif inner == (frame.width, frame.height):
        i420_to_rgb(frame.pixels, place)
    else:
        planes_to_rgb(frame.planes, inner, place)


def draw_cropped(frame: Frame, fit: Fit, out: U8) -> None:
    """Write the part of the frame that `letterbox.crop_fit` chooses as RGB over all of ``out`` (H, W, 3)."""
    size = (out.shape[1], out.shape[0])
    left, top, width, height = letterbox.cropped(fit, size)
    if frame.format != "yuv420p":
        bgr_to_rgb(frame.pixels[top : top + height, left : left + width], size, out)
        return
    halves = np.s_[top // 2 : (top + height + 1) // 2, left // 2 : (left + width + 1) // 2]
    luma, u, v = frame.planes
    planes_to_rgb((luma[top : top + height, left : left + width], u[halves], v[halves]), size, out)
