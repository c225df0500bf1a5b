"""Any outputs give either what the format promises, or the error that they have another format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from camgraph.stages.vision.decoding.detections import Detections
from camgraph.stages.vision.decoding.formats import Asked, detections_of
from camgraph.stages.vision.decoding.movenet import HEAD_CHANNELS, NotFinite
from camgraph.stages.vision.decoding.promised import WrongShape
from camgraph.stages.vision.recognition import FORMATS
from camgraph.stages.vision.recognition.reading import MAY_BE_WHOLE

DECODED = [name for name in FORMATS if name != "classes"]
WITHOUT_POINTS = (
    "yolox",
    "yolo_v7_rows",
    "efficient_nms",
    "nas_flat",
    "torchvision",
    "ppyoloe",
    "ppyoloe_raw",
    "nanodet",
    "picodet",
    "tf_ssd",
    "rtdetr_rows",
    "rtdetr_end2end",
    "rtdetr",
    "detr",
    "detr_softmax",
)
SIZE = (64, 32)
CELLS = 8 * 4 + 4 * 2 + 2
TYPES = ("float32", "float16", "float64", "int8", "uint8", "int64", "uint64", "bool", "complex64", "U1")
VALUES = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, -1.0, 40.0, 200.0, 1e30, -1e30, np.nan, np.inf, -np.inf)
MOST_ROWS = 6
SEEDS = 400

Arrays = list[np.ndarray[Any, Any]]


def good_shapes(name: str, rows: int, asked: Asked) -> list[tuple[int, ...]]:
    """Those of a format for one picture."""
    classes, points, values = asked.classes, asked.keypoints, asked.keypoints * asked.point_values
    return {
        "yolo": [(4 + classes + values, rows)],
        "yolo_pose": [(rows, 4 + classes + values)],
        "yolo_end2end": [(rows, 6 + values)],
        "yolo_objectness": [(rows, 5 + classes + values)],
        "yolo_v7_rows": [(rows, 7)],
        "yolox": [(CELLS, 5 + classes)],
        "efficient_nms": [(1,), (rows, 4), (rows,), (rows,)],
        "tf_ssd": [(1,), (rows, 4), (rows,), (rows,)],
        "nanodet": [(CELLS, classes + 32)],
        "picodet": [(cells, side) for side in (classes, 32) for cells in (8 * 4, 4 * 2, 2, 1)],
        "torchvision": [(rows,), (rows, 4), (rows,)],
        "ppyoloe": [(rows, 6), (1,)],
        "ppyoloe_raw": [(rows, 4), (classes, rows)],
        "scrfd": [(2 * cells, side) for side in (1, 4, 10) for cells in (8 * 4, 4 * 2, 2)],
        "nas_flat": [(rows, 7)],
        "nas_pose_flat": [(rows, 6 + 3 * points)],
        "nas_pose_batch": [(1,), (rows, 4), (rows,), (rows, points, 3)],
        "rtmo": [(rows, 5), (rows, points, 3)],
        "simcc": [(points, 2 * SIZE[0]), (points, rows)],
        "heatmaps": [(points, rows, 5)],
        "rtdetr_rows": [(rows, 4 + classes)],
        "rtdetr_end2end": [(rows, 6)],
        "rtdetr": [(rows,), (rows, 4), (rows,)],
        "detr": [(rows, 4), (rows, classes)],
        "detr_softmax": [(rows, 4), (rows, classes + 1)],
        "movenet_multipose": [(channels, rows, rows) for channels in HEAD_CHANNELS.values()],
        "movenet_people": [(rows, 56)],
        "movenet_single": [(1, 17, 3)],
    }[name]


def points_of(name: str) -> int:
    return 0 if name in WITHOUT_POINTS else 5 if name == "scrfd" else 17


class Chance:
    """All random values, from one seed: if hypothesis drew each value, the test would take a hundred times as long."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def one_of(self, values: Sequence[Any]) -> Any:
        return values[self._rng.integers(len(values))]

    def asked(self, name: str) -> Asked:
        """What may be asked of a model of the format."""
        is_fixed = name.startswith("movenet") or name in (*WITHOUT_POINTS, "scrfd")
        return Asked(
            classes=self.one_of([1, 2, 3]),
            kept=self.one_of([None, (0,), (1, 2)]),
            keypoints=points_of(name) if is_fixed else self.one_of([0, 1, 3]),
            point_values=self.one_of([2, 3]) if name.startswith("yolo") else 3,
            min_score=self.one_of([0.0, 0.3, 1.0]),
            most=self.one_of([1, 4]),
        )

    def array(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Mostly of the shape and type that is promised."""
        if self.one_of(range(10)) == 0:
            shape = tuple(self.one_of([0, 1, 2, 4, 5, 17, *shape]) for _ in range(self.one_of(range(6))))
        kind = self.one_of(TYPES) if self.one_of(range(6)) == 0 else "float32"
        values = [self.one_of(VALUES) for _ in range(self.one_of([1, 2, 3, 4]))]
        with np.errstate(all="ignore"):
            return np.asarray(self._rng.choice(values, shape)).astype(kind)

    def outputs(self, name: str, asked: Asked) -> Arrays:
        made = [self.array(shape) for shape in good_shapes(name, self.one_of(range(MOST_ROWS)), asked)]
        number = self.one_of(range(12))
        return made[1:] if number == 0 else [*made, made[0]] if number == 1 else made


def is_read(name: str, reported: Arrays, asked: Asked) -> bool:
    """Whether it is read, with what is promised, and not refused."""
    try:
        found = detections_of(name, reported, SIZE, asked)
    except WrongShape as error:
        place = error.output
    except NotFinite:
        place = 0 if name == "movenet_multipose" else -1
    else:
        check_found(found, asked)
        return True
    assert 0 <= place < max(1, len(reported))
    return False


def check_found(found: Detections, asked: Asked) -> None:
    number = len(found.scores)
    assert number <= asked.most
    shapes = [(number, 4), (number,), (number,), (number, asked.keypoints, 3)]
    assert [array.shape for array in found] == shapes
    assert [array.dtype.name for array in found] == ["float32", "float32", "int64", "float32"]
    assert asked.kept is None or set(found.classes.tolist()) <= set(asked.kept)


@pytest.mark.parametrize("name", DECODED)
@pytest.mark.slow
def test_whatever_a_model_gives_is_read_or_refused(name: str) -> None:
    read = 0
    for seed in range(SEEDS):
        chance = Chance(seed)
        asked = chance.asked(name)
        read += is_read(name, chance.outputs(name, asked), asked)
    assert 0 < read < SEEDS


@pytest.mark.parametrize("name", DECODED)
@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_what_is_promised_is_read(name: str, kind: str) -> None:
    """The test above must not pass only because everything is refused."""
    asked = Asked(classes=2, keypoints=points_of(name))
    made = [np.zeros(shape, kind) for shape in good_shapes(name, 3, asked)]
    assert is_read(name, made, asked)


@pytest.mark.parametrize("name", [*WITHOUT_POINTS, "movenet_single"])
def test_keypoints_that_a_format_has_not_are_refused(name: str) -> None:
    asked = Asked(keypoints=5)
    with pytest.raises(WrongShape, match=r"expected 5 keypoints, and the format has (0|17)"):
        detections_of(name, [np.zeros(shape, np.float32) for shape in good_shapes(name, 3, asked)], SIZE, asked)


@pytest.mark.parametrize("name", DECODED)
@pytest.mark.parametrize("kind", ["uint8", "int64", "bool"])
def test_boxes_scores_and_joints_are_floats(name: str, kind: str) -> None:
    """Counts and classes alone may be whole numbers."""
    asked = Asked(classes=2, keypoints=points_of(name))
    shapes = good_shapes(name, 3, asked)
    whole = MAY_BE_WHOLE.get(name, ())  # type: ignore[call-overload]
    for place in range(len(shapes)):
        made = [np.zeros(shape, kind if at == place else "float32") for at, shape in enumerate(shapes)]
        assert is_read(name, made, asked) == (place in whole)
