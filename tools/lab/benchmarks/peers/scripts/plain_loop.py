"""The loop that most people write: OpenCV reads each camera in turn, ONNX Runtime runs frame by frame.

python plain_loop.py JOB     (JSON, see tools/lab/benchmarks/peers/job.py)
"""

from __future__ import annotations

import json
import sys
import time

import cv2
from pose_model import PoseModel, Results


def main(job: dict) -> None:
    """Round and round over all cameras until each has ended."""
    model = PoseModel(job)
    results = Results(len(job["clips"]))
    open_ones = {number: cv2.VideoCapture(clip) for number, clip in enumerate(job["clips"])}
    while open_ones:
        for number, capture in list(open_ones.items()):
            there, frame = capture.read()
            if not there:
                del open_ones[number]
                continue
            decoded = time.monotonic()
            [people] = model.people([frame])
            results.add(number, people, 1000 * (time.monotonic() - decoded))
    results.answer("onnxruntime", "onnxruntime-gpu", "opencv-python", "opencv-python-headless")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
