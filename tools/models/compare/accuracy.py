"""How right models are on pictures with known keypoints: average precision by OKS, as COCO counts it.

FILE of COCO     images (id, file_name) and annotations with 17 keypoints; the pictures lie beside it, or in a folder
                 that is named
FOLDER of YOLO   images/*/*.jpg and labels/*/*.txt: class, cx, cy, w, h, 17 x (x, y, visibility), in fractions;
                 pictures without a file of labels show nobody
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, UserError
from camgraph.pipeline.single_stage import stamp
from camgraph.stages.messages import Frame
from camgraph.tools.models.chain import Chain
from camgraph.tools.models.pose_estimators import U8, Estimator, Poses
from camgraph.tools.models.pose_truth import KEYPOINTS, Precision, Truth, precision, yolo_truth

_NOBODY = Poses(np.empty((0, 4), np.float32), np.empty(0, np.float32), np.empty((0, KEYPOINTS, 3), np.float32))
_WANTED = "expected a file of COCO's keypoints (person_keypoints_val2017.json), or a folder with images and labels"


def read_labels(labels: Path, pictures: Path | None, count: int) -> Truth:
    """The first ``count`` labelled pictures. Raises UserError, or EnvironmentProblem without pycocotools."""
    if find_spec("pycocotools") is None:
        raise EnvironmentProblem(
            "--labels needs pycocotools, which counts average precision and is not installed: pip install pycocotools",
            error_id="extra-missing",
        )
    if not labels.exists():
        raise UserError(f"--labels {labels}: there is no such file; {_WANTED}", error_id="labels-unreadable")
    truth = yolo_truth(labels) if labels.is_dir() else _coco(labels, pictures or labels.parent)
    truth = first_pictures(truth, count)
    missing = [path for path in truth.paths.values() if not path.is_file()]
    if missing:
        raise UserError(
            f"--labels {labels}: picture {missing[0]} is not there ({len(missing)} of {len(truth.paths)} are missing); "
            "name the folder that has them: --pictures",
            error_id="labels-unreadable",
        )
    if not truth.paths or not truth.people:
        raise UserError(
            f"--labels {labels}: no picture in it shows anybody with known keypoints; {_WANTED}",
            error_id="labels-unreadable",
        )
    return truth


def _coco(labels: Path, pictures: Path) -> Truth:
    try:
        coco = json.loads(labels.read_text())
        paths = {image["id"]: pictures / image["file_name"] for image in coco["images"]}
        counts = {len(annotation["keypoints"]) for annotation in coco["annotations"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"--labels {labels}: cannot be read ({type(error).__name__}: {error}); {_WANTED}",
            error_id="labels-unreadable",
        ) from None
    if counts - {3 * KEYPOINTS}:
        raise UserError(
            f"--labels {labels}: people of other than {KEYPOINTS} keypoints; {_WANTED}", error_id="labels-unreadable"
        )
    return Truth(labels.name, paths, {**coco, "info": {}})


def first_pictures(truth: Truth, count: int) -> Truth:
    """The truth of ``count`` pictures at most: a model does not miss people on others."""
    paths = dict(list(truth.paths.items())[:count])
    of_these: dict[str, Any] = {
        "images": [image for image in truth.coco["images"] if image["id"] in paths],
        "annotations": [entry for entry in truth.coco["annotations"] if entry["image_id"] in paths],
    }
    return Truth(truth.name, paths, {**truth.coco, **of_these})


def precision_of(chain: Chain, truth: Truth) -> Precision | None:
    """For the people that a graph with this model would report; None if the model has other keypoints than COCO's."""
    return precision(truth, _estimator(chain)) if chain.reading.keypoints == KEYPOINTS else None


def _estimator(chain: Chain) -> Estimator:
    def estimate(bgr: U8) -> Poses:
        height, width = bgr.shape[:2]
        prepared = chain.prepared(Frame(stamp(), np.ascontiguousarray(bgr), width, height))
        try:
            found = chain.people(chain.inferred(prepared))
        except BadItem:  # a graph would drop the frame
            return _NOBODY
        return Poses(found.boxes, found.scores, found.keypoints)

    return estimate
