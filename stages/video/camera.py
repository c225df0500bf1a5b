"""The settings of one camera: a video file, a folder of pictures, a picture, or a live stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.stage import CameraSettings
from camgraph.stages.video import addresses, inspection, pictures
from camgraph.stages.video.dates import Beginning, beginning, date_in_metadata, date_in_name, zone_of
from camgraph.stages.video.timeline import SECOND_NS, Selection

FILM_FPS = 10.0
Decode = Literal["auto", "cpu", "cuda"]


class Camera(CameraSettings):
    """The settings of one camera under `cameras:`."""

    # An error must not quote the address: it may hold a password.
    model_config = ConfigDict(hide_input_in_errors=True, allow_inf_nan=False)

    url: str = Field(
        min_length=1,
        repr=False,
        description="A video file, a folder of pictures or a picture (relative to the graph file, or asset:NAME), "
        "an address such as rtsp://host:554/path (with user:password@ before the host if the camera asks for them), "
        "or /dev/video0",
    )
    transport: Literal["tcp", "udp"] = Field(
        "tcp",
        description="RTSP: how pictures travel. Over `tcp`, a lost packet holds up those behind it; over `udp` it does "
        "not",
    )
    redirects: Literal["refuse", "follow"] = Field(
        "refuse",
        description="RTSP and HTTP: whether the camera may lead to another host or port, by a redirect or in a "
        "playlist; the user and password of `url` are never sent there",
    )
    connect_s: float = Field(
        3.0,
        ge=0.5,
        le=30,
        description="Live: the most seconds to connect, and as many again to find out the format. Above 3, a camera "
        "may take longer than 5 s to be back",
    )
    stalled_s: float | None = Field(
        None,
        ge=1,
        le=300,
        description="Live: after this many seconds without a packet it is `stalled`, and 8 s later it is connected to "
        "again. By default 3, 12 for a playlist (HLS), and at least 2 more than `every_s`",
    )
    every_s: float = Field(
        1.0,
        ge=0.1,
        le=3600,
        description="HTTP: if the `url` is the address of one picture (JPEG), it is fetched again after this many "
        "seconds. A stream ignores it",
    )
    max_fps: float | None = Field(
        None, gt=0, le=1000, description="The most frames to take for each second of media time; by default all"
    )
    start_s: float = Field(0.0, ge=0, description="Files: the second of the file to start at")
    duration_s: float | None = Field(None, gt=0, description="Stop after this many seconds of media time")
    loop: bool = Field(False, description="Files: begin again at the end; each round is a new epoch")
    realtime: bool = Field(False, description="Files: read them no faster than they were recorded")
    fps: float | None = Field(
        None,
        gt=0,
        le=1000,
        description="Folders: the pictures are a film of this many frames a second; 10 if their names make them one",
    )
    sequence: bool | None = Field(
        None,
        description="Folders: whether the pictures follow each other as in a film; false: they are photographs, and "
        "each is judged by itself. By default a film if `fps` is set, or if their names count up from 0 or 1",
    )
    decode: Decode = Field(
        "cpu",
        description="Live cameras: the device that decodes. `auto` takes a CUDA device if there is one, and reports if "
        "there is none; `cuda` takes nothing else",
    )
    decode_device: int = Field(
        0, ge=0, le=1023, description="Live cameras: which CUDA device decodes, by its number, if one does"
    )
    playlist: bool = Field(
        False,
        description="Files: the `url` may be a playlist (.m3u8) or a concat script, which makes FFmpeg read the files "
        "that it names; they must lie in its folder or below",
    )
    memory_mb: int = Field(
        inspection.MEMORY_MB,
        ge=64,
        le=65_536,
        description="The most memory that FFmpeg may take for this camera beyond that of its process, and the most "
        "shared memory of its pictures, in MB. A file that wants more is refused, or ends if that shows while it is "
        "read; a live camera is lost (`too much memory`)",
    )
    start_at: datetime | None = Field(
        None,
        description="Files: the date and time of day at the first frame, as 2026-11-22T10:44:39+01:00; by default the "
        "creation time in the file's metadata, or the date and time in its name",
    )
    time_zone: str = Field(
        "UTC",
        description="Files: the zone of a `start_at`, and of a date in the name or the metadata, that has none, as "
        "Europe/Berlin or +01:00",
    )

    @field_validator("url")
    @classmethod
    def _ends_with_no_blank(cls, url: str) -> str:
        # Copied with its line end. The name of a file may have blanks around it.
        return url.strip() if addresses.is_live(url.strip()) else url

    @field_validator("start_at")
    @classmethod
    def _fits_64_bits(cls, at: datetime | None) -> datetime | None:
        if at is not None and not 1970 <= at.year < 2200:  # nanoseconds since 1970 must fit into 64 bits
            raise ValueError(f"expected a date from 1970 to 2199, got {at.year:04d}-{at.month:02d}-{at.day:02d}")
        return at

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, text: str) -> str:
        zone_of(text)
        return text

    @model_validator(mode="after")
    def _photographs_have_no_rate(self) -> Camera:
        if self.sequence is False and self.fps is not None:
            raise ValueError("fps is for pictures that follow each other, and sequence is false; remove one of them")
        return self

    @model_validator(mode="after")
    def _live_has_no_beginning(self) -> Camera:
        if addresses.is_live(self.url):
            for name in ("start_s", "loop", "realtime", "playlist", "start_at", "sequence"):
                if getattr(self, name):
                    raise ValueError(f"{name} is for files, and this camera is live; remove it")
        return self

    def idle_settings(self) -> Iterator[tuple[str, str]]:
        """(name, why) of each that was written and would do nothing at this address."""
        if not addresses.is_live(self.url):
            for name in sorted(self.model_fields_set & {"connect_s", "decode", "decode_device", "stalled_s"}):
                yield name, f"{name} is for live cameras, and the `url` of this one is a file; remove it"
        if "transport" in self.model_fields_set and not addresses.is_rtsp(self.url):
            yield "transport", "transport is for rtsp cameras, and the `url` of this one is not rtsp://...; remove it"
        if "redirects" in self.model_fields_set and not addresses.is_gated(self.url):
            yield "redirects", "redirects is for rtsp and http cameras, and the `url` of this one is neither; remove it"
        if "every_s" in self.model_fields_set and not addresses.is_web(self.url):
            yield "every_s", "every_s is for cameras with an http address, and the `url` of this one is none; remove it"
        elif self.stalled_s is not None and "every_s" in self.model_fields_set and self.stalled_s <= self.every_s:
            yield "stalled_s", f"expected more than every_s ({self.every_s:g}), got {self.stalled_s:g}"
        if self.transport == "udp" and addresses.scheme_of(self.url) == "rtsps":
            yield "transport", "rtsps carries pictures in its encrypted connection alone: expected tcp, got udp"

    def path(self, base_folder: Path) -> Path:
        """The path of the file or folder. Raises UserError."""
        return inspection.path_of(self.url, base_folder)

    def selection(self, resume: Stamp | None) -> Selection:
        """Which frames to take, after those up to `resume` have been taken."""
        start_ns = round(self.start_s * SECOND_NS)
        end_ns = None if self.duration_s is None else start_ns + round(self.duration_s * SECOND_NS)
        return Selection(start_ns, end_ns, self.max_fps, resume.time_ns if resume else None)

    def film_fps(self, path: Path) -> float | None:
        """Of a folder or a picture: frames a second, or None for photographs. Raises UserError."""
        is_film = self.sequence
        if is_film is None:
            is_film = path.is_dir() and (self.fps is not None or pictures.count_up(pictures.list_pictures(path)))
        return (self.fps or FILM_FPS) if is_film else None

    def beginning(self, name: str, metadata: Mapping[str, str]) -> Beginning:
        """When the file or photograph of this name and with this metadata was recorded."""
        zone = zone_of(self.time_zone)
        start_at = self.start_at
        if start_at is not None and start_at.tzinfo is None:
            start_at = start_at.replace(tzinfo=zone)
        return beginning(start_at, date_in_metadata(metadata, zone), date_in_name(name, zone))
