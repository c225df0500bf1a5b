"""The settings of one camera: a video file, a folder of pictures, a picture, or a live stream."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from pipeline.messages import Stamp
from pipeline.stage import CameraSettings
from stages.reading import addresses, inspection
from stages.reading.timeline import SECOND_NS, Selection

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Decode = Literal["auto", "cpu", "cuda"]


class Camera(CameraSettings):
    """One camera, as it stands under its name in `cameras:`."""

    # An error must not quote the address: it may hold a password.
    model_config = ConfigDict(hide_input_in_errors=True, allow_inf_nan=False)

    url: str = Field(
        min_length=1,
        repr=False,
        description="A video file, a folder of pictures or a picture (relative to the graph file, or asset:NAME), "
        "an address such as rtsp://host:554/path (with user:password@ before the host where the camera asks for them), "
        "or /dev/video0",
    )
    transport: Literal["tcp", "udp"] = Field(
        "tcp",
        description="RTSP: how pictures travel. udp: what is lost on the way does not hold up what comes behind it",
    )
    connect_s: float = Field(
        3.0,
        ge=0.5,
        le=30,
        description="Live: connecting may take so long, and finding out what comes as long again; "
        "above 3 a camera may take longer than 5 s to be back",
    )
    stalled_s: float | None = Field(
        None,
        ge=1,
        le=300,
        description="Live: without a packet for so long it is `stalled`, and 8 s later it is connected to again; "
        "3 by default, 12 for a playlist (HLS)",
    )
    max_fps: float | None = Field(
        None, gt=0, le=1000, description="Take at most so many frames for each second of media time; all by default"
    )
    start_s: float = Field(0.0, ge=0, description="Files: skip what lies before this time, in seconds of the file")
    duration_s: float | None = Field(None, gt=0, description="Stop after so many seconds of media time")
    loop: bool = Field(False, description="Files: begin again at the end; every round is a new epoch")
    realtime: bool = Field(False, description="Files: not faster than they were recorded")
    fps: float = Field(10.0, gt=0, le=1000, description="Frames per second of a folder of pictures")
    decode: Decode = Field(
        "cpu",
        description="Live cameras: where pictures are decoded; auto takes a CUDA device where there is one, and says "
        "where there is none, cuda takes nothing else",
    )
    start_at: AwareDatetime = Field(_EPOCH, description="Files: the wall clock at the first frame, with a time zone")

    @model_validator(mode="after")
    def _live_has_no_beginning(self) -> Camera:
        if addresses.is_live(self.url):
            for name in ("start_s", "loop", "realtime"):
                if getattr(self, name):
                    raise ValueError(f"{name} is for files, and this camera is live; remove it")
        return self

    def idle_settings(self) -> Iterator[tuple[str, str]]:
        """(name, why) of each that was written and would do nothing at this address."""
        if not addresses.is_live(self.url):
            for name in sorted(self.model_fields_set & {"connect_s", "decode", "stalled_s"}):
                yield name, f"{name} is for live cameras, and the `url` of this one is a file; remove it"
        if "transport" in self.model_fields_set and not addresses.is_rtsp(self.url):
            yield "transport", "transport is for rtsp cameras, and the `url` of this one is not rtsp://...; remove it"
        if self.transport == "udp" and addresses.scheme_of(self.url) == "rtsps":
            yield "transport", "rtsps carries pictures in its encrypted connection alone: expected tcp, got udp"

    def path(self, base_folder: Path) -> Path:
        """Where the file or folder lies. Raises UserError."""
        return inspection.path_of(self.url, base_folder)

    def selection(self, resume: Stamp | None) -> Selection:
        """Which frames to take, after those up to `resume` have been taken."""
        start_ns = round(self.start_s * SECOND_NS)
        end_ns = None if self.duration_s is None else start_ns + round(self.duration_s * SECOND_NS)
        return Selection(start_ns, end_ns, self.max_fps, resume.time_ns if resume else None)

    @property
    def start_wall_ns(self) -> int:
        """`start_at` in nanoseconds since 1970."""
        return (self.start_at - _EPOCH) // timedelta(microseconds=1) * 1000
