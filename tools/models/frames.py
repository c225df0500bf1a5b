"""Frames of videos, pictures and live cameras that models are tried on: a sample of all that these show."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import cast

import av

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, UserError
from camgraph.pipeline.single_stage import HandContext
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.system.redaction import redact_url
from camgraph.stages.messages import Frame
from camgraph.stages.video import addresses, inspection, pictures
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.video.opening import Signs, decoded, open_video
from camgraph.stages.video.places import ONE_FRAME_A_PACKET

MOST_WAIT_S = 30.0
"""The limit for the next picture: allows several tries to connect, and a camera with few keyframes."""


def frames_of(sources: Sequence[str], count: int) -> Iterator[Frame]:
    """``count`` frames of videos, folders of pictures or pictures, or all if there are fewer; always the same.

    Sources give equally many, spread over each from its beginning to its end; short ones are made up for by the
    others. A live camera's frames are taken as they come. Raises UserError if a source cannot be read, and
    EnvironmentProblem if a live camera sends no picture for `MOST_WAIT_S`.
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


# ---- which frames stand for all of some sources: so many in all, spread over each of them
#
# frames there      5   100   100        count 25
# frames of each    5    10    10        a short source gives all it has, and the others make up for it
# places            0 1 2 3 4   5 15 25 ... 95


def shares(there: Sequence[int], count: int) -> list[int]:
    """How many frames of each source: as even as can be, none more than it has, ``count`` together or all there are.

    If that does not come out even, the first sources give one more.
    """
    found = [0] * len(there)
    left = min(count, sum(there))
    while left:
        more = [index for index, has in enumerate(there) if found[index] < has]
        each = max(1, left // len(more))
        for index in more[:left]:
            given = min(each, there[index] - found[index])
            found[index] += given
            left -= given
    return found


def places(there: int, count: int) -> list[int]:
    """The numbers of ``count`` frames of ``there``, ascending: the middles of as many equal parts."""
    return [(2 * number + 1) * there // (2 * count) for number in range(count)]


# ---- frames of a live camera as they come, with a time-out: without a picture for so long it is given up


class Patience:
    """A stop (`pipeline.stage.Stop`) that comes by itself, so many seconds after it was last `renewed`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Start the time again."""
        self._until_s = time.monotonic() + self._seconds

    def is_set(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._until_s

    def wait(self, timeout: float) -> bool:
        """Sleep at most ``timeout`` seconds, and not beyond the end; whether it is over then."""
        time.sleep(max(0.0, min(timeout, self._until_s - time.monotonic())))
        return self.is_set()


def live_frames(camera: Camera, count: int) -> Iterator[Frame]:
    """``count`` frames. Raises EnvironmentProblem if none comes for `MOST_WAIT_S`."""
    patience = Patience(MOST_WAIT_S)
    with tempfile.TemporaryDirectory() as folder:
        context = HandContext(Path.cwd(), Path(folder))
        taken = Capture(Settings(), "frames", camera, context).frames(patience, None)
        with closing(cast("Generator[Frame]", taken)) as frames:
            for _ in range(count):
                frame = next(frames, None)
                if frame is None:
                    raise EnvironmentProblem(_gone(camera, context), error_id="camera-lost")
                yield frame
                patience.renew()


def _gone(camera: Camera, context: HandContext) -> str:
    shown = redact_url(camera.url)
    _, state, why = context.camera_states[-1]
    reason = why.removeprefix(f"{shown}: ")
    return (
        f"{shown}: no picture came within {MOST_WAIT_S:g} s; the camera is {state}{f' ({reason})' if reason else ''}. "
        "Expected one that sends pictures now and is reached from this machine: look at the address, user and "
        "password, and at the network; or give a recorded video"
    )
