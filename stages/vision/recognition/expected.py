"""The outputs of each format, in words for users whose model has others. n: pictures."""

from __future__ import annotations

from collections.abc import Mapping

from stages.vision.recognition.reading import Format

EXPECTED: Mapping[Format, str] = {
    "yolo_pose": "[n, rows, anchors], with rows for the box (4), each class (1) and each keypoint (3 or 2)",
    "yolo": "[n, rows, anchors], with rows for the box (4) and each class (1)",
    "yolo_end2end": "[n, people, columns], with columns for box, score, class (6) and each keypoint (3 or 2)",
    "yolo_objectness": "[n, anchors, columns], 3 anchors a cell, columns for box, objectness (5) and each class (1)",
    "yolo_v7_rows": "[rows, 7]: image, box, class, score",
    "yolox": "[n, cells, columns], with columns for box, objectness (5) and each class (1)",
    "efficient_nms": "a count [n, 1], boxes [n, k, 4], scores [n, k] and classes [n, k]",
    "nas_pose_flat": "[rows, columns], with columns for image, box, score (6) and each keypoint (3)",
    "nas_pose_batch": "a count [n, 1], boxes [n, k, 4], scores [n, k] and joints [n, k, keypoints, 3]",
    "rtmo": "boxes with scores [n, k, 5] and points [n, k, keypoints, 3]",
    "movenet_multipose": "the six heads center, kpt_heatmap, kpt_regress, kpt_offset, box_scale and box_offset",
    "movenet_people": "[n, 6, 56]",
    "movenet_single": "[n, 1, 17, 3]",
    "classes": "[n, classes]",
}
