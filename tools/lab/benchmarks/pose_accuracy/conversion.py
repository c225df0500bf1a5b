"""Our MultiPose against a reference conversion, and our decoder against the published one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import cv2
import numpy as np

from camgraph.stages.vision.decoding.movenet import MIN_KEYPOINT, decode_multipose
from camgraph.tools.assets.movenet.tfjs import Graph
from camgraph.tools.lab.published_decoder import published_decoder
from camgraph.tools.models.pose_estimators import U8, multipose_heads

SIZES = ((256, 256), (640, 416), (768, 576))
"""(width, height) of the pictures that are compared."""
SAME_CONFIDENCE = 1e-5


class Difference(NamedTuple):
    """The largest absolute difference of each head, over all sizes and batches 1 and 3."""

    by_head: dict[str, float]
    pictures: int


class Agreement(NamedTuple):
    """Published people that were compared, and how far ours are from them, in model pixels.

    `box` and `keypoint`: the largest distances. `shared`: the share of confidences that the published decoder takes
    from another person in the same cell; `confidence`: the largest difference of the others.
    """

    people: int
    box: float
    keypoint: float
    confidence: float
    shared: float


def head_differences(ours: Any, reference: Any, pictures: Sequence[U8]) -> Difference:
    """Over BGR pictures, stretched to each of SIZES."""
    largest: dict[str, float] = {}
    for size in SIZES:
        stretched = np.stack([stretch(picture, size) for picture in pictures])
        for batch in (stretched[:1], stretched[:3], *(stretched[i : i + 1] for i in range(1, len(stretched)))):
            expected = multipose_heads(reference, batch)
            for name, head in multipose_heads(ours, batch).items():
                largest[name] = max(largest.get(name, 0.0), float(np.abs(head - expected[name]).max()))
    return Difference(largest, len(pictures))


def stretch(bgr: U8, size: tuple[int, int]) -> U8:
    """(H, W, 3) RGB of this size."""
    return np.ascontiguousarray(cv2.resize(bgr, size)[..., ::-1], np.uint8)


def decoder_agreement(model: Any, graph: Graph, pictures: Sequence[U8], min_score: float) -> Agreement:
    """Each published person of at least `min_score` against the one of ours with the nearest box."""
    rows = [row for picture in pictures for row in _compared(model, graph, picture, min_score)]
    boxes, keypoints, confidences = (np.array(column) for column in zip(*rows, strict=True))
    own = np.abs(confidences) < SAME_CONFIDENCE
    return Agreement(
        len(rows),
        float(boxes.max()),
        float(keypoints.max()),
        float(np.abs(confidences[own]).max()),
        float(1 - own.mean()),
    )


def _compared(model: Any, graph: Graph, bgr: U8, min_score: float) -> list[tuple[float, float, Any]]:
    width, height = SIZES[-1]
    heads = {name: head[0] for name, head in multipose_heads(model, stretch(bgr, (width, height))[None]).items()}
    ours = decode_multipose(heads, min_score=min_score / 10, iou=1.0, min_keypoint=MIN_KEYPOINT)
    rows = []
    for person in published_decoder(graph, heads):
        if person[55] >= min_score:
            keypoints = person[:51].reshape(17, 3)
            apart = np.abs(ours.boxes_xyxy - person[[52, 51, 54, 53]] * (width, height, width, height)).max(axis=1)
            nearest = int(apart.argmin())
            places = np.abs(ours.keypoints[nearest, :, :2] - keypoints[:, 1::-1] * (width, height))
            rows.append((float(apart[nearest]), float(places.max()), ours.keypoints[nearest, :, 2] - keypoints[:, 2]))
    return rows


def speed_ratio(ours: Any, reference: Any, picture: U8, rounds: int = 15) -> tuple[float, float]:
    """(our time / the reference's, our time in ms) at 768 x 576, medians of alternating runs."""
    batch = stretch(picture, SIZES[-1])[None]
    times: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(rounds):
        for which, model in enumerate((ours, reference)):
            times[which].append(_seconds(partial(multipose_heads, model, batch)))
    our, theirs = (float(np.median(times[which][2:])) for which in (0, 1))
    return our / theirs, our * 1e3


def decode_ms(model: Any, bgr: U8, min_score: float, rounds: int = 300) -> tuple[float, int]:
    """(median time of one decoding at 768 x 576 in ms, how many people there were)."""
    heads = {name: head[0] for name, head in multipose_heads(model, stretch(bgr, SIZES[-1])[None]).items()}
    people = len(decode_multipose(heads, min_score=min_score, iou=0.6).scores)
    times = [_seconds(lambda: decode_multipose(heads, min_score=min_score, iou=0.6)) for _ in range(rounds)]
    return float(np.median(times)) * 1e3, people


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
