"""Pictures with known people, and the average precision of the people found in them, as COCO counts it."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.stages.video.pictures import is_picture
from camgraph.tools.models.pose_estimators import U8, Estimator

KEYPOINTS = 17
# COCO's own ratio of a person's outline to the box, as other evaluations of boxes without outlines take it.
AREA_OF_BOX = 0.53
_BOX_COLUMNS = 5
_COLUMNS = _BOX_COLUMNS + 3 * KEYPOINTS
_LABELS = (
    f"expected {_COLUMNS} numbers a line: class, centre x and y, width, height, then {KEYPOINTS} x (x, y, visibility)"
)


class Precision(NamedTuple):
    """OKS average precision over all thresholds, at 0.5 and 0.75, and average recall."""

    ap: float
    ap50: float
    ap75: float
    recall: float


@dataclass(frozen=True)
class Truth:
    """A set of pictures in COCO's terms. `paths`: image id -> file."""

    name: str
    paths: dict[int, Path]
    coco: dict[str, Any]

    @property
    def people(self) -> int:
        """How many have at least one known keypoint; only those count."""
        return sum(annotation["num_keypoints"] > 0 for annotation in self.coco["annotations"])

    def pictures(self) -> Iterator[tuple[int, U8]]:
        for image_id, path in self.paths.items():
            yield image_id, read_picture(path)


def read_picture(path: Path) -> U8:
    """(H, W, 3) BGR. Raises UserError if the file is no picture."""
    picture = cv2.imread(str(path))
    if picture is None:
        raise UserError(
            f"{path}: expected a picture, got something that OpenCV cannot read", error_id="labels-unreadable"
        )
    return np.asarray(picture, np.uint8)


def coco_truth(folder: Path) -> Truth:
    """Pictures of COCO val2017 with their annotations, in `test_coco.json`."""
    coco = json.loads((folder / "test_coco.json").read_text())
    paths = {image["id"]: folder / image["file_name"] for image in coco["images"]}
    return Truth("COCO val2017", paths, {**coco, "info": {}})


def yolo_truth(folder: Path) -> Truth:
    """Pictures with labels as YOLO keeps them: class, cx, cy, w, h, 17 x (x, y, visibility), in fractions.

    On a picture without labels is nobody. Raises UserError if a file holds other labels, or no picture.
    """
    paths = dict(enumerate(sorted(filter(is_picture, folder.glob("images/*/*"))), start=1))
    annotations: list[dict[str, Any]] = []
    images = []
    for image_id, path in paths.items():
        height, width = read_picture(path).shape[:2]
        images.append({"id": image_id, "width": width, "height": height, "file_name": path.name})
        for values in _labels(folder / "labels" / path.parent.name / f"{path.stem}.txt"):
            annotations.append({"id": len(annotations) + 1, "image_id": image_id, **_person(values, width, height)})
    categories = [{"id": 1, "name": "person"}]
    return Truth("coco8-pose", paths, {"images": images, "annotations": annotations, "categories": categories})


def _labels(file: Path) -> Iterator[NDArray[np.float64]]:
    """The numbers of each line; none if there is no file. Raises UserError if one is none of a person."""
    try:
        lines = file.read_text().splitlines() if file.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{file}: cannot be read ({type(error).__name__}): {_LABELS}", error_id="labels-unreadable"
        ) from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _label(line, f"{file}:{number}")


def _label(line: str, place: str) -> NDArray[np.float64]:
    """(56,). Raises UserError if the line holds something else."""
    try:
        values = np.array(line.split(), float)
    except ValueError:
        raise UserError(
            f"{place}: got something that is not a number; {_LABELS}", error_id="labels-unreadable"
        ) from None
    if len(values) != _COLUMNS:
        boxes = ": these are boxes without keypoints" if len(values) == _BOX_COLUMNS else ""
        raise UserError(f"{place}: got {len(values)} numbers{boxes}; {_LABELS}", error_id="labels-unreadable")
    if not np.isfinite(values).all():
        raise UserError(f"{place}: got a number that is not finite; {_LABELS}", error_id="labels-unreadable")
    return values


def _person(values: NDArray[np.float64], width: int, height: int) -> dict[str, Any]:
    cx, cy, w, h = values[1:5] * (width, height, width, height)
    keypoints = values[5:].reshape(KEYPOINTS, 3) * (width, height, 1)
    return {
        "category_id": 1,
        "iscrowd": 0,
        "bbox": [cx - w / 2, cy - h / 2, w, h],
        "area": w * h * AREA_OF_BOX,
        "keypoints": keypoints.ravel().tolist(),
        "num_keypoints": int((keypoints[:, 2] > 0).sum()),
    }


def precision(truth: Truth, estimate: Estimator) -> Precision:
    """The figures of pycocotools for the people that `estimate` finds. Raises EnvironmentProblem without
    pycocotools.
    """
    try:
        from pycocotools.coco import COCO  # noqa: PLC0415
        from pycocotools.cocoeval import COCOeval  # noqa: PLC0415
    except ImportError as error:
        raise EnvironmentProblem(
            "pycocotools is not installed; run: pip install pycocotools", error_id="extra-missing"
        ) from error
    found = [_result(image_id, *person) for image_id, bgr in truth.pictures() for person in _people(estimate, bgr)]
    if not found:
        return Precision(0.0, 0.0, 0.0, 0.0)
    with contextlib.redirect_stdout(io.StringIO()):
        known = COCO()
        known.dataset = truth.coco
        known.createIndex()
        evaluation = COCOeval(known, known.loadRes(found), "keypoints")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return Precision(*(float(evaluation.stats[i]) for i in (0, 1, 2, 5)))


def _people(estimate: Estimator, bgr: U8) -> Iterator[tuple[float, Any]]:
    found = estimate(bgr)
    return zip(found.scores.tolist(), found.keypoints, strict=True)


def _result(image_id: int, score: float, keypoints: Any) -> dict[str, Any]:
    flat = np.concatenate([keypoints[:, :2], np.ones((KEYPOINTS, 1))], axis=1).ravel().tolist()
    return {"image_id": image_id, "category_id": 1, "keypoints": flat, "score": score}
