"""The reading of a model, and the statements that a user may make about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from camgraph.stages.vision.letterbox import FitName
from camgraph.stages.vision.recognition.signature import Signature

Format = Literal[
    "yolo_pose", "yolo", "yolo_end2end", "yolo_objectness", "yolo_v7_rows", "yolox", "nanodet", "picodet", "scrfd",
    "efficient_nms", "tf_ssd", "torchvision", "ppyoloe", "ppyoloe_raw", "rtdetr_rows", "rtdetr_end2end", "rtdetr",
    "detr", "detr_softmax", "nas_flat", "nas_pose_flat", "nas_pose_batch", "rtmo", "simcc", "heatmaps",
    "movenet_multipose", "movenet_people", "movenet_single", "classes",
]  # fmt: skip
FORMATS: tuple[Format, ...] = get_args(Format)
EXPECTED: Mapping[Format, str] = {
    "yolo_pose": "[n, rows, anchors], with rows for the box (4), each class (1) and each keypoint (3 or 2)",
    "yolo": "[n, rows, anchors], with rows for the box (4) and each class (1)",
    "yolo_end2end": "[n, people, columns], with columns for box, score, class (6) and each keypoint (3 or 2)",
    "yolo_objectness": "[n, anchors, columns], 3 anchors a cell, columns for box, objectness (5) and each class (1)",
    "yolo_v7_rows": "[rows, 7]: image, box, class, score",
    "yolox": "[n, cells, columns], with columns for box, objectness (5) and each class (1)",
    "picodet": "for each stride of 8, 16, 32 and 64 scores [n, cells, classes] and logits [n, cells, 32]",
    "nanodet": "[n, cells, columns], with columns for each class (1) and four distances (8 each)",
    "scrfd": "scores [anchors, 1], boxes [anchors, 4], points [anchors, 10] of strides 8, 16, 32; 2 anchors a cell",
    "efficient_nms": "a count [n, 1], boxes [n, k, 4], scores [n, k] and classes [n, k]",
    "rtdetr_rows": "[n, queries, columns], with columns for the box (4) and each class (1)",
    "rtdetr_end2end": "[n, queries, 6]: box, score, class",
    "rtdetr": "labels [n, k], boxes [n, k, 4] and scores [n, k]",
    "detr": "boxes [n, queries, 4] and logits [n, queries, classes]",
    "detr_softmax": "boxes [n, queries, 4] and logits [n, queries, classes + 1], the last one of no object",
    "tf_ssd": "a count [n], boxes [n, k, 4], scores [n, k] and classes [n, k]",
    "torchvision": "boxes [k, 4], labels [k] and scores [k], of one picture",
    "ppyoloe": "[rows, 6]: class, score, box, and a count, of one picture",
    "ppyoloe_raw": "boxes [n, anchors, 4] and scores [n, classes, anchors]",
    "nas_flat": "[rows, 7]: image, box, score, class",
    "nas_pose_flat": "[rows, columns], with columns for image, box, score (6) and each keypoint (3)",
    "nas_pose_batch": "a count [n, 1], boxes [n, k, 4], scores [n, k] and joints [n, k, keypoints, 3]",
    "rtmo": "boxes with scores [n, k, 5] and points [n, k, keypoints, 3]",
    "simcc": "likely places along x [n, keypoints, parts] and along y [n, keypoints, parts]",
    "heatmaps": "heat maps [n, keypoints, height, width]",
    "movenet_multipose": "the six heads center, kpt_heatmap, kpt_regress, kpt_offset, box_scale and box_offset",
    "movenet_people": "[n, 6, 56]",
    "movenet_single": "[n, 1, 17, 3]",
    "classes": "[n, classes]",
}
"""The outputs of each format, in words for users whose model has others. n: pictures."""
MIXING: frozenset[Format] = frozenset({"nas_flat", "nas_pose_flat", "yolo_v7_rows"})
"""Those whose output holds the rows of all images of a batch."""
MAY_BE_WHOLE: Mapping[Format, tuple[int, ...]] = {
    "nas_pose_batch": (0,),
    "efficient_nms": (0, 3),
    "tf_ssd": (0, 3),
    "torchvision": (0,),
    "ppyoloe": (1,),
    "rtdetr": (0,),
}
"""The places of outputs that may hold whole numbers, because they are counts or classes."""

COCO_CLASSES = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow", "elephant",
    "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard",
    "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket", "bottle",
    "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich", "orange", "broccoli",
    "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch", "potted plant", "bed", "dining table", "toilet",
    "tv", "laptop", "mouse", "remote", "keyboard", "cell phone", "microwave", "oven", "toaster", "sink",
    "refrigerator", "book", "clock", "vase", "scissors", "teddy bear", "hair drier", "toothbrush",
)  # fmt: skip
_UNUSED = (0, 12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
"""The ids from 0 to 90 that COCO gives to no category."""
_NAMES = iter(COCO_CLASSES)
COCO_CATEGORIES = tuple(f"unused{number}" if number in _UNUSED else next(_NAMES) for number in range(91))
"""The names of the categories by COCO's own ids."""
PERSON = ("person",)
MOST_POINTS = 1000
"""Of a person: a model with more has no poses."""


@dataclass(frozen=True)
class Picture:
    """The pictures that a kind of model wants, as far as its input does not show it."""

    order: Literal["rgb", "bgr"] = "rgb"
    scale: float | None = None
    """Its value of a pixel is pixel * scale; None: 1/255 for floats, else 1."""
    align: Literal["centre", "corner"] = "centre"
    """The place of the frame in the padding: `corner` is the upper left."""
    pad: int = 114
    fit: FitName = "letterbox"


STRETCHED = Picture(fit="stretch")
"""Of models that were trained with pictures whose proportions were given up."""


@dataclass(frozen=True)
class Reading:
    """The format of a model. ``outputs`` are the names of its outputs in the order in which the format takes them."""

    format: Format
    why: str
    outputs: tuple[str, ...]
    classes: tuple[str, ...] = PERSON
    keypoints: int = 0
    point_values: int = 3
    size: tuple[int, int] | None = None
    """(width, height) of its pictures, if there is only one size."""
    picture: Picture = Picture()
    alone: bool = False
    """Whether its outputs have no axis for pictures, so that each run has one picture."""

    @property
    def of_floats(self) -> tuple[str, ...]:
        """The names of the outputs with boxes, scores and joints, which whole numbers cannot say."""
        whole = MAY_BE_WHOLE.get(self.format, ())
        return tuple(name for place, name in enumerate(self.outputs) if place not in whole)

    @property
    def mixes_images(self) -> bool:
        """Whether its output holds the rows of all images of a batch, each with its image's number first."""
        return self.format in MIXING


FIXED_POINTS: Mapping[Format, int] = {
    **dict.fromkeys(
        (
            "yolo", "yolo_v7_rows", "yolox", "nanodet", "picodet", "efficient_nms", "tf_ssd", "torchvision", "ppyoloe",
            "ppyoloe_raw", "rtdetr_rows", "rtdetr_end2end", "rtdetr", "detr", "detr_softmax", "nas_flat", "classes",
        ),
        0,
    ),
    "scrfd": 5,
    "movenet_multipose": 17,
    "movenet_people": 17,
    "movenet_single": 17,
}  # fmt: skip
"""The formats that have a number of keypoints of their own. Models of the others may have any."""
OF_ANY_VALUES: frozenset[Format] = frozenset({"yolo_pose", "yolo_end2end", "yolo_objectness"})
"""The formats whose keypoints may have two values or three. Those of the others have three."""


class Declared(NamedTuple):
    """The user's statements about a model, for facts that it shows wrongly or not at all."""

    format: Format | None = None
    keypoints: int | None = None
    classes: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    """The names of those that count; the model has others beside them."""
    point_values: int | None = None

    def over(self, other: Declared) -> Declared:
        """With the other's statements, for facts that this one leaves open."""
        keypoints = other.keypoints if self.keypoints is None else self.keypoints
        classes, outputs = self.classes or other.classes, self.outputs or other.outputs
        return Declared(
            self.format or other.format, keypoints, classes, outputs, self.point_values or other.point_values
        )

    def facts(self) -> dict[str, str | int | list[str]]:
        """The statements about format, keypoints and outputs, as plain values."""
        outputs = None if self.outputs is None else list(self.outputs)
        values = {
            "format": self.format,
            "keypoints": self.keypoints,
            "point_values": self.point_values,
            "outputs": outputs,
        }
        return {key: value for key, value in values.items() if value is not None}


def without_effect(declared: Declared) -> tuple[str, str] | None:
    """(setting, why) if the declared format cannot have the declared keypoints, or values of each."""
    name = declared.format
    if name is None:
        return None
    fixed = FIXED_POINTS.get(name)
    if fixed is not None and declared.keypoints not in (None, fixed):
        return "keypoints", f"models of format {name} have {fixed or 'no'} keypoints: remove `keypoints`"
    if declared.point_values == 2 and name not in OF_ANY_VALUES:
        return "point_values", f"models of format {name} leave no choice of values: remove `point_values`"
    return None


def class_names(signature: Signature, count: int) -> tuple[str, ...]:
    """By the metadata if it names so many; else COCO's if their number fits, or numbers."""
    names = _written_names(signature)
    if sorted(names, key=str) == sorted(range(count), key=str):
        return tuple(str(names[number]) for number in range(count))
    if count == 1:
        return PERSON
    return COCO_CLASSES if count == len(COCO_CLASSES) else tuple(f"class{number}" for number in range(count))


def category_names(signature: Signature, count: int) -> tuple[str, ...]:
    """As `class_names`, for models that may number classes by COCO's ids of 1 to 90: 91 with those that are unused."""
    if count != len(COCO_CATEGORIES) or named_classes(signature) == count:
        return class_names(signature, count)
    return COCO_CATEGORIES


def named_classes(signature: Signature) -> int | None:
    """How many classes the metadata names; None if it names none."""
    return len(_written_names(signature)) or None


def _written_names(signature: Signature) -> Mapping[object, object]:
    """By number: `names` of Ultralytics' exporter, or lines of `character`, as models of PaddlePaddle have them."""
    names = signature.literal("names")
    if isinstance(names, dict):
        return names
    return (
        dict(enumerate(signature.metadata.get("character", "").split("\n")))
        if "character" in signature.metadata
        else {}
    )


def known_classes(signature: Signature, declared: Declared) -> int | None:
    """Their number by the metadata, else by the user's names; None if neither gives it."""
    return named_classes(signature) or len(declared.classes or ()) or None


def unseen_classes(signature: Signature, declared: Declared, usual: int) -> tuple[str, ...]:
    """The names of classes that no shape counts: as many as somebody names, else ``usual``."""
    return class_names(signature, known_classes(signature, declared) or usual)


def point_shape(signature: Signature, declared: Declared) -> tuple[int, int] | None:
    """(keypoints, values of each) as declared or by the metadata; None if neither gives it, or there are none."""
    points, values = _written_points(signature) or (0, 3)
    if declared.keypoints is not None:
        points = declared.keypoints
    return (points, declared.point_values or values) if points else None


def _written_points(signature: Signature) -> tuple[int, int] | None:
    shape = signature.literal("kpt_shape")
    if not isinstance(shape, (list, tuple)) or len(shape) != 2 or not all(type(side) is int for side in shape):
        return None
    return (shape[0], shape[1]) if 1 <= shape[0] <= MOST_POINTS and shape[1] in (2, 3) else None
