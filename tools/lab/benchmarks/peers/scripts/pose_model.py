"""YOLO-pose as the usual programs around ONNX Runtime run it: session with default options, letterbox, NMS in numpy.

Run beside the peers' scripts, in any environment that has cv2, numpy and onnxruntime; imports nothing of camgraph.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import PackageNotFoundError, version

import cv2
import numpy as np
import onnxruntime as ort


class PoseModel:
    """The model of a job, loaded and run once."""

    def __init__(self, job: dict) -> None:
        self.width, self.height = job["size"]
        self.min_score, self.iou = job["min_score"], job["iou"]
        provider = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}[job["provider"]]
        self.session = ort.InferenceSession(job["model"], providers=[provider])
        if (
            self.session.get_providers()[0] != provider
        ):  # without the provider, ONNX Runtime takes the CPU, with a warning at most
            raise SystemExit(f"ONNX Runtime has no {provider} here")
        self.input = self.session.get_inputs()[0].name
        self.people([np.zeros((self.height, self.width, 3), np.uint8)])

    def people(self, frames: list) -> list[int]:
        """How many are in each of these BGR frames; all go through the model as one batch."""
        batch = np.stack([self.picture(frame) for frame in frames])
        (heads,) = self.session.run(None, {self.input: batch})
        return [self.count(one) for one in heads]

    def picture(self, frame: np.ndarray) -> np.ndarray:
        """(3, H, W) float32 RGB in [0, 1], letterboxed."""
        height, width = frame.shape[:2]
        scale = min(self.width / width, self.height / height)
        inner = round(width * scale), round(height * scale)
        left, top = (self.width - inner[0]) // 2, (self.height - inner[1]) // 2
        picture = np.full((self.height, self.width, 3), 114, np.uint8)
        picture[top : top + inner[1], left : left + inner[0]] = cv2.resize(frame, inner)
        return np.ascontiguousarray(picture[:, :, ::-1].transpose(2, 0, 1), np.float32) / np.float32(255)

    def count(self, heads: np.ndarray) -> int:
        """People in the heads (56, A) of one picture."""
        rows = heads[:, heads[4] >= self.min_score].T
        centres, sizes = rows[:, :2], rows[:, 2:4]
        boxes = np.concatenate([centres - sizes / 2, centres + sizes / 2], 1)
        return len(self.suppressed(boxes, rows[:, 4]))

    def suppressed(self, boxes: np.ndarray, scores: np.ndarray) -> list[int]:
        """Greedy non-maximum suppression, the best first: which are kept."""
        areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        order, kept = scores.argsort()[::-1], []
        while len(order):
            best, rest = order[0], order[1:]
            kept.append(int(best))
            low = np.maximum(boxes[best, :2], boxes[rest, :2])
            high = np.minimum(boxes[best, 2:], boxes[rest, 2:])
            common = np.clip(high - low, 0, None).prod(1)
            order = rest[common <= self.iou * (areas[best] + areas[rest] - common)]
        return kept


class Results:
    """The results by camera. The time counts from the making of this object."""

    def __init__(self, cameras: int) -> None:
        self.frames, self.people = [0] * cameras, [0] * cameras
        self.latencies_ms: list[float] = []
        self.begun_ns = self.ended_ns = time.monotonic_ns()

    def add(self, camera: int, people: int, latency_ms: float | None = None) -> None:
        """One frame's result."""
        self.ended_ns = time.monotonic_ns()
        self.frames[camera] += 1
        self.people[camera] += people
        if latency_ms is not None:
            self.latencies_ms.append(latency_ms)

    def answer(self, *packages: str) -> None:
        """The last line of the output."""
        values = {
            "begun_ns": self.begun_ns,
            "ended_ns": self.ended_ns,
            "frames": self.frames,
            "people": self.people,
            "latencies_ms": [round(value, 3) for value in self.latencies_ms],
            "versions": {name: installed(name) for name in packages},
        }
        sys.stdout.write(f"\n{json.dumps(values)}\n")


def installed(package: str) -> str:
    """Its version; "" if it is not there (OpenCV has several packages)."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
