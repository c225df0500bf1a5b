"""Ultralytics on several streams at once: its own loader (a thread a stream), one batch over all streams.

    python ultralytics_streams.py JOB     (JSON, see ../job.py; in an environment with ultralytics, AGPL-3.0)

`stream_buffer`: every frame is wanted. `rect=False`: the same picture as everybody else's, not a smaller one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

os.environ |= {"YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false", "YOLO_VERBOSE": "false"}

from pose_model import Results
from ultralytics import YOLO


def main(job: dict) -> None:
    """All results of all streams; they come camera by camera in each batch."""
    width, height = job["size"]
    asked = {
        "imgsz": (height, width), "conf": job["min_score"], "iou": job["iou"], "max_det": 100, "rect": False,
        "device": 0 if job["provider"] == "cuda" else "cpu", "verbose": False, "save": False, "show": False,
    }  # fmt: skip
    model = YOLO(job["model"], task="pose")
    model.predict(np.zeros((height, width, 3), np.uint8), **asked)
    cameras = len(job["clips"])
    with tempfile.TemporaryDirectory() as folder:
        streams = Path(folder) / "clips.streams"
        streams.write_text("\n".join(job["clips"]) + "\n")
        results = Results(cameras)
        found = model.predict(str(streams), stream=True, stream_buffer=True, **asked)
        for number, result in enumerate(found):
            results.add(number % cameras, len(result.boxes))
    results.answer("ultralytics", "torch", "onnxruntime", "opencv-python")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
