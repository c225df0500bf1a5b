"""Frames of videos and pictures that models are tried on: a sample of all that these show."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import av

from pipeline.errors import BadItem, UserError
from pipeline.single_stage import HandContext
from pipeline.stage import Settings
from pipeline.system.redaction import redact_url
from stages.capture import Camera, Capture
from stages.messages import Frame
from stages.reading import addresses, inspection, pictures
from stages.reading.opening import Signs, decoded, open_video
from stages.reading.places import ONE_FRAME_A_PACKET
from tools.models.live_frames import live_frames
from tools.models.sampling import places, shares


def frames_of(sources: Sequence[str], count: int) -> Iterator[Frame]:
    """``count`` frames of videos, folders of pictures or pictures, or all if there are fewer; always the same.

    Sources give equally many, spread over each from its beginning to its end; short ones are made up for by the
    others. A live camera's frames are taken as they come. Raises UserError if a source cannot be read, and
    EnvironmentProblem if a live camera sends no picture for `live_frames.MOST_WAIT_S`.
    """
    cameras = [_camera(source) for source in sources]
    there = [frames_in(camera, count) for camera in cameras]
    for camera, has, share in zip(cameras, there, shares(there, count), strict=True):
        if addresses.is_live(camera.url):
            yield from live_frames(camera, share)
        else:
            yield from _taken(camera, places(has, share))


def _camera(source: str) -> Camera:
    """Raises UserError if it is none, as far as the address shows."""
    if not source:
        raise UserError(
            "--frames: expected a video, a folder of pictures, a picture or a camera's address, got nothing",
            error_id="source-missing",
        )
    if wrong := inspection.what_is_wrong(source, Path.cwd()):  # FFmpeg opens a file in another process first
        raise UserError(f"--frames {redact_url(source)}: {wrong}", error_id="source-missing")
    return Camera.model_validate({"url": source})


def source_name(source: str) -> str:
    """A source's name for people: the name of a file, an address without its credentials."""
    return redact_url(source) if addresses.is_live(source) else Path(addresses.file_of(source)).name


def frames_in(camera: Camera, enough: int) -> int:
    """How many frames a source has; a live one has ``enough``. Raises UserError if it cannot be read."""
    if addresses.is_live(camera.url):
        return enough
    if mistyped := inspection.why_mistyped(camera.url, Path.cwd()):
        raise UserError(mistyped, error_id="camera-address")
    path = camera.path(Path.cwd())
    if pictures.is_album(path):
        return len(pictures.list_pictures(path))
    counted = _packets(path)
    return _pictures(path) if counted is None else counted


def _packets(path: Path) -> int | None:
    """As many packets as a video has, which takes milliseconds; None if they may not be as many as its frames."""
    with open_video(path) as (container, stream):
        if stream.codec_context.name not in ONE_FRAME_A_PACKET:
            return None
        count = 0
        try:
            for packet in container.demux(stream):
                if packet.is_corrupt or packet.is_discard:
                    return None
                count += packet.size > 0
        except av.FFmpegError:
            return None
    return count


def _pictures(path: Path) -> int:
    """Counted by decoding all of them; of a file that is cut off, those before that place."""
    count = 0
    with open_video(path) as (container, stream), suppress(BadItem):  # the present ones are as good as any
        for _ in decoded(path, container, stream, Signs()):
            count += 1
    return count


def _taken(camera: Camera, wanted: Sequence[int]) -> Iterator[Frame]:
    """The frames with these numbers; instead of one that is damaged the next one."""
    if not wanted:
        return
    here = Path.cwd()
    capture = Capture(Settings(), "frames", camera, HandContext(here, here))
    found = 0
    for frame in capture.frames(threading.Event(), None):
        if frame.stamp.seq >= wanted[found]:
            yield frame
            found += 1
            if found == len(wanted):
                return
