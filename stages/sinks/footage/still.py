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

from camgraph.stages.video.packets import Packet, VideoStreamInfo, shown_frame
from camgraph.stages.vision.drawing import draw_caption, draw_people, draw_reasons, free_places

Picture = NDArray[np.uint8]
Look = Literal["annotated", "clean", "blurred_faces", "skeleton_only"]
JPEG_QUALITY = 90


def decode_last(packets: Sequence[Packet], *, until_s: float = math.inf) -> Picture | None:
    """The upright picture (H, W, 3) BGR of the last packet; None if it cannot be decoded before `until_s` (monotonic).

    `packets` begin at a keyframe.
    """
    wanted = packets[-1]
    found: VideoFrame | None = None  # alone: all pictures since a keyframe that is long ago would take gigabytes
    with opened_sample(wanted.stream) as container:
        context = container.streams.video[0].codec_context
        context.thread_type = "NONE"
        for packet in packets:
            if time.monotonic() > until_s:
                return None
            with suppress(av.FFmpegError):
                found = found or _taken_at(wanted.pts, context.decode(av_packet(packet)))
        with suppress(av.FFmpegError):
            found = found or _taken_at(wanted.pts, context.decode(None))
    if found is None:
        return None
    return np.ascontiguousarray(wanted.stream.orientation.upright(found.to_ndarray(format="bgr24")))


def _taken_at(pts: int, frames: Sequence[VideoFrame]) -> VideoFrame | None:
    return next((frame for frame in frames if frame.pts == pts), None)


def opened_sample(stream: VideoStreamInfo) -> InputContainer:
    """The file whose stream says how packets are to be decoded."""
    return av.open(io.BytesIO(stream.sample), "r")


def av_packet(packet: Packet) -> AvPacket[Any]:
    """The packet as PyAV has it."""
    made: AvPacket[Any] = av.Packet(packet.data)
    made.pts, made.dts, made.duration = packet.pts, packet.dts, packet.duration
    made.time_base = Fraction(packet.stream.time_base)
    made.is_keyframe = packet.is_key
    return made


def drawn(picture: Picture, data: Mapping[str, Any], look: Look, zone: tzinfo) -> Picture:
    """The picture as `look` wants it, of the event whose `data` it shows, with times of `zone`. Changes `picture`.

    Nothing may stand against it (`why_not_shown`).
    """
    if look == "clean":
        return picture
    boxes, joints, ids = _people(data, picture.shape)
    if look == "blurred_faces":
        _blur_heads(picture, data)
    if look == "skeleton_only":
        picture[:] = 0
    skeleton = str(data.get("keypoints_format", "coco-17"))
    labels = [f"#{track_id}" for track_id in ids]
    places = free_places(picture, has_caption=True, reasons=1)
    draw_people(picture, boxes, joints, ids, labels, skeleton=skeleton, alarmed=ids, places=places)
    draw_caption(picture, str(data.get("camera", "")), _local(data.get("start_time"), zone))
    draw_reasons(picture, [_what(data)])
    return picture


def _what(data: Mapping[str, Any]) -> str:
    """`fall: Somebody falls ...`: the action, and what its rule is about."""
    rule = data.get("rule")
    about = rule.get("about") if isinstance(rule, Mapping) else None
    return ": ".join(str(part) for part in (data.get("action", ""), about) if part)


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
        _blur_heads(copy, data)
    return copy


def _people(
    data: Mapping[str, Any], shape: tuple[int, ...]
) -> tuple[NDArray[np.float32], NDArray[np.float32], list[int]]:
    """Boxes (N, 4), joints (N, K, 3) and ids, in pixels of a picture that may be larger than the judged frame."""
    people, scale = data.get("people") or [], _scale(data, shape)
    boxes = np.array([one["bbox"] for one in people], np.float32).reshape(-1, 4) * scale
    # Not -1: there may be nobody (`nobody_there`), and detectors may know no joints.
    count = len(people[0]["keypoints"]) // 3 if people else 0
    joints = np.array([one["keypoints"] for one in people], np.float32).reshape(len(people), count, 3)
    joints = joints * np.append(scale[:2], np.float32(1))
    return boxes, joints, [int(one["track_id"]) for one in people]


def _scale(data: Mapping[str, Any], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """(4,): of x, y, x, y, from the judged frame to a picture of this shape."""
    frame = shown_frame(data)
    across, down = shape[1] / (frame.get("width") or shape[1]), shape[0] / (frame.get("height") or shape[0])
    return np.array([across, down, across, down], np.float32)


def why_not_shown(data: Mapping[str, Any], look: Look) -> str:
    """Why there can be no picture of this event with this look; "" if there can be."""
    if look != "blurred_faces" or data.get("heads") is not None:
        return ""
    return "its event does not tell where heads are, and so they cannot be blurred"


def _blur_heads(picture: Picture, data: Mapping[str, Any]) -> None:
    """Make all heads of an event unrecognisable: each is four squares of one colour, more if it is long."""
    scale = _scale(data, picture.shape)
    for area in data["heads"]:
        x1, y1, x2, y2 = (np.array(area) * scale).tolist()
        cell = max(2, math.ceil(min(x2 - x1, y2 - y1) / 2))
        left, top = max(0, math.floor(x1)), max(0, math.floor(y1))
        part = picture[top : max(0, math.ceil(y2)), left : max(0, math.ceil(x2))]
        if part.size:
            height, width = part.shape[:2]
            few = max(1, width // cell), max(1, height // cell)
            mean = cv2.resize(part, few, interpolation=cv2.INTER_AREA)
            part[:] = cv2.resize(mean, (width, height), interpolation=cv2.INTER_NEAREST)


def jpeg(picture: Picture, quality: int = JPEG_QUALITY) -> bytes:
    """The picture as a JPEG; `quality` up to 100."""
    _, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return data.tobytes()
