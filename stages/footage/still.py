"""The picture of one moment, decoded from packets and drawn on."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from fractions import Fraction
from typing import Any, Literal

import av
import cv2
import numpy as np
from av.container import InputContainer
from av.packet import Packet as AvPacket
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from stages.footage.packets import Packet, VideoStreamInfo
from stages.vision.drawing import draw_caption, draw_people, draw_reasons

Picture = NDArray[np.uint8]
Look = Literal["annotated", "clean", "blurred_faces", "skeleton_only"]
HEAD_JOINTS = 5
"""Nose, eyes and ears are the first joints of coco-17."""
_HEAD_MARGIN = 1.6
_LEAST_CONFIDENCE = 0.1
"""Faces are blurred where a joint of the head is only suspected."""
JPEG_QUALITY = 90


def decode_last(packets: Sequence[Packet], *, until_s: float = math.inf) -> Picture | None:
    """The picture (H, W, 3) BGR of the last packet; None if it cannot be decoded, or not before `until_s` (monotonic).

    `packets` begin at a keyframe.
    """
    wanted = packets[-1]
    frames: list[VideoFrame] = []
    with opened_sample(wanted.stream) as container:
        context = container.streams.video[0].codec_context
        context.thread_type = "NONE"
        for packet in packets:
            if time.monotonic() > until_s:
                return None
            with suppress(av.FFmpegError):
                frames += context.decode(av_packet(packet))
        with suppress(av.FFmpegError):
            frames += context.decode(None)
    found = next((frame for frame in frames if frame.pts == wanted.pts), None)
    return None if found is None else np.ascontiguousarray(found.to_ndarray(format="bgr24"))


def opened_sample(stream: VideoStreamInfo) -> InputContainer:
    """The file whose stream says how packets are to be decoded."""
    return av.open(io.BytesIO(stream.sample), "r", format="nut")


def av_packet(packet: Packet) -> AvPacket[Any]:
    """The packet as PyAV has it."""
    made: AvPacket[Any] = av.Packet(packet.data)
    made.pts, made.dts, made.duration = packet.pts, packet.dts, packet.duration
    made.time_base = Fraction(packet.stream.time_base)
    made.is_keyframe = packet.is_key
    return made


def drawn(picture: Picture, data: Mapping[str, Any], look: Look, zone: tzinfo) -> Picture:
    """The picture as `look` wants it, of the event whose `data` it shows, with times of `zone`. Changes `picture`."""
    if look == "clean":
        return picture
    boxes, joints, ids = _people(data, picture.shape)
    if look == "blurred_faces":
        for person in joints:
            _blur_head(picture, person)
    if look == "skeleton_only":
        picture[:] = 0
    skeleton = str(data.get("keypoints_format", "coco-17"))
    draw_people(picture, boxes, joints, ids, [f"#{track_id}" for track_id in ids], skeleton=skeleton, alarmed=ids)
    draw_caption(picture, str(data.get("camera", "")), _local(data.get("start_time"), zone))
    draw_reasons(picture, [str(data.get("action", ""))])
    return picture


def _local(time: object, zone: tzinfo) -> str:
    """`2026-11-23 22:14:05 CET`; "" if it is no time."""
    try:
        return f"{datetime.fromisoformat(str(time)).astimezone(zone):%Y-%m-%d %H:%M:%S %Z}"
    except (ValueError, OverflowError):
        return ""


def for_crops(picture: Picture, data: Mapping[str, Any], look: Look, zone: tzinfo) -> Picture:
    """The picture of which people are cut out: nothing is drawn on it, and it shows no more than `look` allows."""
    if look == "skeleton_only":
        return drawn(picture.copy(), data, look, zone)
    copy = picture.copy()
    if look == "blurred_faces":
        for person in _people(data, picture.shape)[1]:
            _blur_head(copy, person)
    return copy


def _people(
    data: Mapping[str, Any], shape: tuple[int, ...]
) -> tuple[NDArray[np.float32], NDArray[np.float32], list[int]]:
    """Boxes (N, 4), joints (N, K, 3) and ids, in pixels of a picture that may be larger than the judged frame."""
    people = data.get("people") or []
    frame = data.get("frame") or {}
    scale = np.array(
        [shape[1] / (frame.get("width") or shape[1]), shape[0] / (frame.get("height") or shape[0])], np.float32
    )
    boxes = np.array([one["bbox"] for one in people], np.float32).reshape(-1, 4) * np.tile(scale, 2)
    # Not -1: there may be nobody (`nobody_there`), and detectors may know no joints.
    count = len(people[0]["keypoints"]) // 3 if people else 0
    joints = np.array([one["keypoints"] for one in people], np.float32).reshape(len(people), count, 3)
    joints = joints * np.append(scale, np.float32(1))
    return boxes, joints, [int(one["track_id"]) for one in people]


def _blur_head(picture: Picture, joints: NDArray[np.float32]) -> None:
    """Make the head unrecognisable: an ellipse around the joints of the head that are at least suspected."""
    head = joints[:HEAD_JOINTS][joints[:HEAD_JOINTS, 2] >= _LEAST_CONFIDENCE, :2]
    if not len(head):
        return
    centre = head.mean(axis=0)
    shoulders = joints[5:7][joints[5:7, 2] >= _LEAST_CONFIDENCE, :2]
    reach = float(np.abs(head - centre).max()) if len(head) > 1 else 0.0
    if len(shoulders):
        reach = max(reach, 0.45 * float(np.linalg.norm(shoulders.mean(axis=0) - centre)))
    radius = max(4, int(_HEAD_MARGIN * reach) or min(picture.shape[:2]) // 20)
    left, top = (max(0, int(value) - radius) for value in centre)
    area = picture[top : int(centre[1]) + radius, left : int(centre[0]) + radius]
    if area.size:
        small = cv2.resize(area, (max(1, area.shape[1] // radius), max(1, area.shape[0] // radius)))
        area[:] = cv2.resize(small, (area.shape[1], area.shape[0]), interpolation=cv2.INTER_NEAREST)


def jpeg(picture: Picture) -> bytes:
    """The picture as a JPEG."""
    _, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return data.tobytes()
