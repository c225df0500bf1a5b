"""The joints of a person as the models name them, and the bones between them."""

from __future__ import annotations

BODY = "coco-17"
"""The name of this order of keypoints: those of a whole body."""
COCO_17 = (
    *("nose", "left_eye", "right_eye", "left_ear", "right_ear"),
    *("left_shoulder", "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist"),
    *("left_hip", "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle"),
)
"""The rows of keypoints, in this order: of each pair the left one (odd) first."""
COCO_17_BONES: tuple[tuple[int, int], ...] = (
    *((0, 1), (0, 2), (1, 3), (2, 4)),
    *((5, 6), (5, 11), (6, 12), (11, 12)),
    *((5, 7), (7, 9), (6, 8), (8, 10)),
    *((11, 13), (13, 15), (12, 14), (14, 16)),
)
"""Both ends of each bone, as rows."""
