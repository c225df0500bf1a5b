"""The types that flow between stages, in the order in which a frame becomes an event.

    Frame -> Tensor -> (batch) -> Tensor -> People -> Tracks -> Event

Boxes are xyxy in pixels of the frame; keypoints are x, y, confidence in pixels of the frame; x to the right, y down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.messages import Array, End, Event, Fields, Message, Stamp, Tombstone, frozen
from camgraph.stages.vision.planes import U8, Planes, join, split

__all__ = ["End", "Event", "Frame", "Labels", "People", "Stamp", "Tensor", "Tombstone", "Tracks"]

F32 = NDArray[np.float32]
PixelFormat = Literal["bgr24", "yuv420p"]


def _expect(ok: bool, type_name: str, what: str) -> None:
    if not ok:
        raise WireError(f"{type_name}: {what}")


@dataclass(frozen=True, eq=False)
class Frame(Message):
    """A decoded picture. Read it with `bgr()`, make one with `of_bgr(stamp, picture)`: both work for every frame.

        from camgraph.stages.messages import Frame

        def blackened(frame: Frame) -> Frame:
            picture = frame.bgr(copy=True)
            picture[: frame.height // 2] = 0
            return Frame.of_bgr(frame.stamp, picture)

    If conversion is too slow for you, look at `format` and read the memory as it is. `bgr24`: `pixels` is (H, W, 3)
    uint8 BGR. `yuv420p`, the usual format of video: `pixels` is (H * 3 // 2, W) uint8, the planes Y, U, V one after the
    other in memory (I420, limited range, even width and height), as cv2.COLOR_YUV2BGR_I420 takes it, and `planes` are
    the three as views. Prefer `planes`: if they lie apart (`of_planes`), `pixels` is a copy of them, made on first use.
    """

    TYPE: ClassVar[str] = "frame"

    pixels: U8
    width: int
    height: int
    format: PixelFormat = "bgr24"
    planes: Planes = field(init=False, repr=False)
    """Of a `yuv420p` frame: Y (H, W), U and V (H / 2, W / 2), to read."""

    @classmethod
    def of_bgr(cls, stamp: Stamp, picture: U8) -> Self:
        """A frame of a (H, W, 3) uint8 BGR picture of any size, which is not copied: change it no more.

        Raises ValueError if the picture has another shape or dtype.
        """
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
            raise ValueError(f"expected a picture of shape (H, W, 3) and uint8, got {picture.shape} {picture.dtype}")
        return cls(stamp, picture, picture.shape[1], picture.shape[0])

    def bgr(self, *, copy: bool = False) -> U8:
        """The picture as a contiguous (H, W, 3) uint8 BGR array, whatever the format.

        A planar frame is converted on the first call, in the colours of BT.601 as everywhere in OpenCV. The array is
        read-only and the same at each call; `copy=True` gives you one of your own, to draw on.
        """
        if copy:
            return self._converted() if self.format == "yuv420p" else np.array(self.pixels, order="C")
        made: U8 | None = self.__dict__.get("_bgr")
        if made is None:
            made = self._converted() if self.format == "yuv420p" else np.ascontiguousarray(self.pixels)
            made = self.__dict__["_bgr"] = frozen(made)
        return made

    def _converted(self) -> U8:
        # Here, and not above: processes that look at no picture, those of tracks and rules, load no OpenCV.
        from camgraph.stages.vision.yuv import i420_to_bgr  # noqa: PLC0415

        return i420_to_bgr(self.pixels)

    @classmethod
    def of_planes(cls, stamp: Stamp, planes: Planes, width: int, height: int) -> Self:
        """A `yuv420p` frame whose planes (`stages.vision.planes`) lie apart; nothing is copied."""
        frame = cls.__new__(cls)
        frame.__dict__.update(stamp=stamp, width=width, height=height, format="yuv420p", planes=planes)
        return frame

    def __getattr__(self, name: str) -> Any:
        """`pixels` and `planes` of a frame that was given the other one. Called once for each, as it is kept."""
        if name == "pixels" and "planes" in self.__dict__:
            made: Any = join(self.planes)
        elif name == "planes" and self.__dict__.get("format") == "yuv420p":
            made = split(self.pixels)
        else:
            raise AttributeError(f"a frame has no {name}")
        self.__dict__[name] = made
        return made

    def fields(self) -> Fields:
        return {"width": self.width, "height": self.height, "format": self.format}

    def arrays(self) -> Mapping[str, Array]:
        return {"pixels": self.pixels}

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        width, height, form = fields["width"], fields["height"], fields["format"]
        expected = (height, width, 3) if form == "bgr24" else (height * 3 // 2, width)
        _expect(arrays["pixels"].shape == expected, "frame", f"pixels must be {expected}, got {arrays['pixels'].shape}")
        return cls(stamp, arrays["pixels"], width, height, form)


@dataclass(frozen=True, eq=False)
class Tensor(Message):
    """Inputs or outputs of a model for one frame: n >= 0 rows (1: the whole frame; n: crops).

    `arrays_by_name`: the model's input or output names (before the model: `image`, uint8 RGB (n, H, W, 3)) -> array
    with a leading axis of n. `fit` (n, 4) float32: scale_x, scale_y, pad_x, pad_y, with model = frame * scale + pad.
    `owner` (n,) int64: whose crop a row is (-1: the whole frame). `frame_size`: (width, height) of the frame.
    `picture_size`: (width, height) of the model's pictures, which outputs that are fractions of it need.
    """

    TYPE: ClassVar[str] = "tensor"
    VERSION: ClassVar[int] = 2

    arrays_by_name: Mapping[str, Array]
    fit: F32
    frame_size: tuple[int, int]
    picture_size: tuple[int, int]
    owner: NDArray[np.int64] = field(default_factory=lambda: np.full(1, -1, np.int64))

    @property
    def rows(self) -> int:
        return len(self.fit)

    def fields(self) -> Fields:
        return {"frame_size": list(self.frame_size), "picture_size": list(self.picture_size)}

    def arrays(self) -> Mapping[str, Array]:
        return {**{f"x.{name}": a for name, a in self.arrays_by_name.items()}, "fit": self.fit, "owner": self.owner}

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        named = {name[2:]: array for name, array in arrays.items() if name.startswith("x.")}
        fit, owner = arrays["fit"], arrays["owner"]
        _expect(fit.ndim == 2 and fit.shape[1] == 4, "tensor", f"fit must be (n, 4), got {fit.shape}")
        _expect(owner.shape == (len(fit),), "tensor", f"owner must be ({len(fit)},), got {owner.shape}")
        for name, array in named.items():
            _expect(
                array.ndim >= 1 and len(array) == len(fit),
                "tensor",
                f"{name} must have {len(fit)} rows, got {array.shape}",
            )
        return cls(stamp, named, fit, tuple(fields["frame_size"]), tuple(fields["picture_size"]), owner)


@dataclass(frozen=True, eq=False)
class People(Message):
    """The people (or things) of one frame.

    `boxes` (N, 4) float32 xyxy; `scores` (N,) float32 in [0, 1]; `keypoints` (N, K, 3) float32 x, y, confidence in
    [0, 1]; `classes` (N,) int64 (0 for people); `skeleton`: the name of the keypoint order; `frame_size`: (width,
    height). `appearance` (N, D) float32, D 0 by default: what each looks like, a unit vector (alike people have a great
    dot product), NaN if it is not known.
    """

    TYPE: ClassVar[str] = "people"
    VERSION: ClassVar[int] = 2

    boxes: F32
    scores: F32
    keypoints: F32
    frame_size: tuple[int, int]
    classes: NDArray[np.int64]
    skeleton: str = "coco-17"
    appearance: F32 = field(default_factory=lambda: np.empty((0, 0), np.float32), kw_only=True)

    def __post_init__(self) -> None:
        if not self.appearance.size:
            object.__setattr__(self, "appearance", np.empty((len(self.boxes), 0), np.float32))

    def __len__(self) -> int:
        return len(self.boxes)

    def fields(self) -> Fields:
        return {"skeleton": self.skeleton, "frame_size": list(self.frame_size)}

    def arrays(self) -> Mapping[str, Array]:
        own: dict[str, Array] = {"appearance": self.appearance} if self.appearance.size else {}
        return {
            "boxes": self.boxes,
            "scores": self.scores,
            "keypoints": self.keypoints,
            "classes": self.classes,
            **own,
        }

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        boxes, keypoints, n = arrays["boxes"], arrays["keypoints"], len(arrays["boxes"])
        _expect(boxes.shape == (n, 4), "people", f"boxes must be (n, 4), got {boxes.shape}")
        _expect(
            keypoints.ndim == 3 and keypoints.shape[0] == n and keypoints.shape[2] == 3,
            "people",
            f"keypoints must be ({n}, K, 3), got {keypoints.shape}",
        )
        for name in ("scores", "classes"):
            _expect(arrays[name].shape == (n,), "people", f"{name} must be ({n},), got {arrays[name].shape}")
        appearance = arrays.get("appearance", np.empty((n, 0), np.float32))
        fits = appearance.ndim == 2 and len(appearance) == n
        _expect(fits, "people", f"appearance must be ({n}, D), got {appearance.shape}")
        return cls(
            stamp,
            boxes,
            arrays["scores"],
            keypoints,
            tuple(fields["frame_size"]),
            arrays["classes"],
            fields["skeleton"],
            appearance=appearance,
        )


@dataclass(frozen=True, eq=False)
class Tracks(People):
    """People with identities: `ids` (N,) int64, unique for a run and camera, never reused.

    `continues` (N,) int64: the id of an earlier track that was lost and is likely the same person's; 0 if there is
    none. `label_scores` (N, C) float32: of the classes of classifiers, `label_names` (C); NaN where none is known.

    `other_boxes` (M, 4) and `other_keypoints` (M, K, 3) float32: of those who were found and have no identity, yet or
    ever. Some of them are nobody; a picture that hides people hides them, too.
    """

    TYPE: ClassVar[str] = "tracks"
    VERSION: ClassVar[int] = 5

    ids: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    continues: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Left out: none of them."""
    label_names: tuple[str, ...] = ()
    label_scores: F32 = field(default_factory=lambda: np.empty((0, 0), np.float32))
    other_boxes: F32 = field(default_factory=lambda: np.empty((0, 4), np.float32))
    other_keypoints: F32 = field(default_factory=lambda: np.empty((0, 0, 3), np.float32))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.continues):
            object.__setattr__(self, "continues", np.zeros(len(self.ids), np.int64))
        if not self.label_names:
            object.__setattr__(self, "label_scores", np.empty((len(self.ids), 0), np.float32))

    def fields(self) -> Fields:
        return {**super().fields(), "label_names": list(self.label_names)}

    def arrays(self) -> Mapping[str, Array]:
        labels = {"label_scores": self.label_scores} if self.label_names else {}
        own: dict[str, Array] = {"ids": self.ids, "continues": self.continues, **labels}
        if len(self.other_boxes):
            own |= {"other_boxes": self.other_boxes, "other_keypoints": self.other_keypoints}
        return {**super().arrays(), **own}

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        people = People.build(stamp, fields, arrays)
        for name in ("ids", "continues"):
            shape = arrays[name].shape
            _expect(shape == (len(people),), "tracks", f"{name} must be ({len(people)},), got {shape}")
        names = tuple(fields["label_names"])
        scores = arrays["label_scores"] if names else np.empty((len(people), 0), np.float32)
        expected = (len(people), len(names))
        _expect(scores.shape == expected, "tracks", f"label_scores must be {expected}, got {scores.shape}")
        return cls(
            stamp,
            people.boxes,
            people.scores,
            people.keypoints,
            people.frame_size,
            people.classes,
            people.skeleton,
            arrays["ids"],
            arrays["continues"],
            names,
            scores,
            *_others(arrays),
            appearance=people.appearance,
        )


def _others(arrays: Mapping[str, Array]) -> tuple[F32, ...]:
    """Boxes and keypoints; nothing if there is nobody."""
    if "other_boxes" not in arrays:
        return ()
    boxes, keypoints = arrays["other_boxes"], arrays["other_keypoints"]
    fit = boxes.ndim == 2 and boxes.shape[1] == 4 and keypoints.ndim == 3 and keypoints.shape[2] == 3
    _expect(
        fit and len(boxes) == len(keypoints),
        "tracks",
        f"others must be (m, 4) and (m, K, 3), got {boxes.shape} and {keypoints.shape}",
    )
    return boxes, keypoints


@dataclass(frozen=True, eq=False)
class Labels(Message):
    """The result of a classifier: `scores` (n, C) float32 over `names` (C), `owner` (n,) as in Tensor."""

    TYPE: ClassVar[str] = "labels"

    scores: F32
    names: tuple[str, ...]
    owner: NDArray[np.int64]

    def fields(self) -> Fields:
        return {"names": list(self.names)}

    def arrays(self) -> Mapping[str, Array]:
        return {"scores": self.scores, "owner": self.owner}

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        scores, names = arrays["scores"], tuple(fields["names"])
        _expect(
            scores.ndim == 2 and scores.shape[1] == len(names),
            "labels",
            f"scores must be (n, {len(names)}), got {scores.shape}",
        )
        return cls(stamp, scores, names, arrays["owner"])
