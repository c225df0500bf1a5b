"""Tries a camera as a run would read it: a real connection, through the stage `capture`, in bounded time."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.single_stage import HandContext
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.stages.messages import Frame
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.vision.planes import U8

WITHIN_S = 12.0
"""For connecting, finding the format, and a picture: a camera may send a keyframe only every few seconds."""
_MOST_S = 60
LOOK_S = 1.0
"""So long pictures are counted."""
_MOST_PICTURES = 60
_DARK = 12
"""The mean brightness, of 255, below which a picture shows nothing."""
_CLOCK_MATTERS_S = 5.0


@dataclass(frozen=True, slots=True)
class Seen:
    """`state` is "live" if pictures came, else why not, as a run would say it: "unauthorised", "gone", "lost" ..."""

    state: str
    why: str = ""
    codec: str = ""
    fps: float = 0.0
    clock_ahead_s: float | None = None
    """How far the camera's clock is ahead of this machine's; None if it sends no time."""
    pictures: tuple[U8, ...] = field(default=(), repr=False)
    """Some of the time looked at, the last one included; (H, W, 3) BGR."""

    @property
    def is_live(self) -> bool:
        return self.state == "live"

    @property
    def picture(self) -> U8 | None:
        """The last one."""
        return self.pictures[-1] if self.pictures else None

    @property
    def is_dark(self) -> bool:
        return self.picture is not None and float(np.mean(self.picture)) < _DARK

    def words(self) -> str:
        """What the camera sends, for people."""
        assert self.picture is not None
        height, width = self.picture.shape[:2]
        rate = f", {self.fps:.0f} frames a second" if self.fps >= 1 else ""
        return f"{_CODECS.get(self.codec, self.codec.upper()) or 'pictures'}, {width} x {height}{rate}"

    def clock_words(self) -> str:
        """ "" if the time of its events will be right."""
        off = self.clock_ahead_s
        if off is None or abs(off) < _CLOCK_MATTERS_S:
            return ""
        how = f"{abs(off):.0f} s" if abs(off) < 120 else f"{abs(off) / 60:.0f} minutes"
        return f"its clock is {how} {'ahead' if off > 0 else 'behind'}: set it in the camera, or events get its time"


_CODECS = {"h264": "H.264", "h265": "H.265", "hevc": "H.265", "mjpeg": "MJPEG"}


class _Trial(HandContext):
    """Ends the trial as soon as the camera has failed: a run would try again for ever."""

    def begin(self, stop: threading.Event) -> None:
        self.stop, self.failed = stop, ("", "")

    def camera_is(self, camera: str, state: str, why: str = "") -> None:
        if state not in ("connecting", "live") and not self.stop.is_set():
            self.failed = (state, why)
            self.stop.set()


def try_camera(url: str, stop: threading.Event, within_s: float = WITHIN_S) -> Seen:
    """Connect, look for a moment, and let go. Takes hardly longer than `within_s`; raises nothing for a bad camera.

    `stop` ends it before.
    """
    try:
        camera = Camera.model_validate({"url": url, "duration_s": _MOST_S})
    except ValidationError as error:
        return Seen("lost", redact_urls("; ".join(one["msg"] for one in error.errors(include_input=False))))
    timer = threading.Timer(within_s, stop.set)
    timer.start()
    try:
        with tempfile.TemporaryDirectory(prefix="cgi") as folder:
            context = _Trial(Path.cwd(), Path(folder), "init", "init", ("camera",))
            context.begin(stop)
            source = Capture(Settings(), "camera", camera, context)
            return _seen(source, context, stop, within_s)
    except (CamgraphError, OSError) as error:
        return Seen("lost", redact_urls(str(error)))
    finally:
        timer.cancel()


def _seen(source: Capture, context: _Trial, stop: threading.Event, within_s: float) -> Seen:
    last: Frame | None = None
    spread: list[Frame] = []
    until_s = next_s = 0.0
    stamps: list[float] = []
    arrivals: list[float] = []
    with closing(_closable(source, stop)) as frames:
        for frame in frames:
            last = frame
            if (now_s := time.monotonic()) >= next_s:
                spread.append(frame)
                next_s = now_s + LOOK_S / 2
            stamp = frame.stamp
            arrivals.append(stamp.time_ns / 1e9)
            if stamp.pts is not None:  # the first picture may lack it
                stamps.append(stamp.pts * stamp.time_base[0] / stamp.time_base[1])
            until_s = until_s or now_s + LOOK_S
            if len(arrivals) >= _MOST_PICTURES or now_s >= until_s:
                break
    if last is None:
        state, why = context.failed
        return Seen(state or "lost", redact_urls(why) or f"no picture came within {within_s:g} s")
    return Seen(
        "live",
        codec=str(context.camera_facts.get("camera", {}).get("codec", "")),
        fps=_rate(stamps) or _rate(arrivals),
        clock_ahead_s=_ahead_s(last),
        pictures=tuple(frame.bgr(copy=True) for frame in (*(one for one in spread if one is not last), last)),
    )


def _closable(source: Capture, stop: threading.Event) -> Generator[Frame, None, None]:
    yield from source.frames(stop, None)


def _rate(times: Sequence[float]) -> float:
    """Pictures a second; 0.0 if these times do not tell. The camera's own stamps do not bunch as arrivals do."""
    passed = times[-1] - times[0] if len(times) > 1 else 0.0
    return (len(times) - 1) / passed if passed > 0 else 0.0


def _ahead_s(frame: Frame) -> float | None:
    if frame.stamp.clock != "ntp":
        return None
    now_ns = time.time_ns() - (time.monotonic_ns() - frame.stamp.captured_ns)
    return (frame.stamp.wall_ns - now_ns) / 1e9
