"""Records live cameras without a break: the packets as they came, in files that begin at keyframes.

    footage/front/recorded/2026-11-23/21-03-11.mp4         from 21:03:11 UTC on
                                      21-04-11.mp4.part    is being written

Only the folder itself remembers the files. If a process is killed, its last file plays, and gets its name when the
folder is tended. Recordings have their own retention: hours of nothing must not take the room of incidents.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import av

from camgraph.stages.sinks.footage.clip import PART, Clip
from camgraph.stages.sinks.writing.recording import plays
from camgraph.stages.video.packets import Packet

FOLDER = "recorded"
_RETRY_S = 10.0
"""How long recording pauses after the disk has failed."""
_LEFT_S = 120.0
"""A file to which nobody has written for so long was left by a killed process."""
_TRIM_S = 300.0


@dataclass(frozen=True, slots=True)
class RecordingLimits:
    """`part_s`: the length of a file. `keep_s`, `keep_bytes`: limits of all files; the oldest are removed first."""

    part_s: float
    keep_s: float
    keep_bytes: float


@dataclass(slots=True)
class _Camera:
    clip: Clip | None = None
    written: int = 0
    """Bytes of the clip so far."""
    last_dts: int = 0
    paused_until_s: float = 0.0
    why: str = ""


@dataclass(slots=True)
class Recording:
    """Records all live cameras below `folder`. For one thread.

    `trouble(camera, why)` is called if a camera cannot be recorded now, and with "" once it can again.
    """

    folder: Path
    limits: RecordingLimits
    trouble: Callable[[str, str], object]
    _cameras: dict[str, _Camera] = field(default_factory=dict)
    _trim_at_s: float = 0.0

    def add(self, name: str, packet: Packet) -> None:
        """Write the next packet of a camera (its name in ASCII). Packets of files are left alone: the file is there.

        A failing disk pauses the recording. So does any other error, which is raised, once in `_RETRY_S`.
        """
        if not packet.stream.is_live:
            return
        camera = self._cameras.setdefault(name, _Camera())
        try:
            if camera.clip is not None and self._is_full(camera, camera.clip, packet):
                self._end(camera)
            if camera.clip is not None and camera.written > self.limits.keep_bytes / 2:  # it would grow for ever
                self._end(camera)
                self._report(
                    name, camera, "it is not recorded until it sends a keyframe: shorten its keyframe interval"
                )
            if camera.clip is None and packet.is_key and time.monotonic() >= camera.paused_until_s:
                camera.clip, camera.written = Clip(self._new_path(name), packet.stream), 0
            if camera.clip is not None:
                camera.clip.add(packet)
                camera.last_dts = packet.dts
                camera.written += len(packet.data)
                self._report(name, camera, "")
        except Exception as error:
            self._pause(name, camera, error)
            if not isinstance(error, OSError | av.FFmpegError):  # a bug, or a codec that PyAV cannot write
                raise

    def _is_full(self, camera: _Camera, clip: Clip, packet: Packet) -> bool:
        if packet.stream != clip.stream or packet.dts < camera.last_dts:
            return True
        long_enough = (packet.pts - clip.first_pts) * packet.stream.time_base >= self.limits.part_s
        return packet.is_key and (long_enough or clip.is_full)

    def _new_path(self, name: str) -> Path:
        """The path of a new file, named by the arrival of its first packet."""
        at = datetime.now(UTC)
        day = self.folder / name / FOLDER / f"{at:%Y-%m-%d}"
        day.mkdir(parents=True, exist_ok=True)
        stems = (f"{at:%H-%M-%S}{further}" for further in ("", *(f"_{n}" for n in range(2, 1000))))
        return next(
            path
            for path in (day / f"{stem}.mp4" for stem in stems)
            if not (path.exists() or path.with_name(path.name + PART).exists())
        )

    def over(self, name: str) -> None:
        """The connection to a camera has ended."""
        camera = self._cameras.get(name)
        if camera is not None:
            try:
                self._end(camera)
            except (OSError, av.FFmpegError) as error:
                self._pause(name, camera, error)

    def _end(self, camera: _Camera) -> None:
        clip, camera.clip = camera.clip, None
        if clip is not None:
            clip.close()

    def _pause(self, name: str, camera: _Camera, error: Exception) -> None:
        """Stop for now. The written part stays, and gets its name when the folder is tended."""
        clip, camera.clip = camera.clip, None
        if clip is not None:
            with suppress(Exception):  # `error` is what people need to know
                clip.leave()
        camera.paused_until_s = time.monotonic() + _RETRY_S
        self._report(name, camera, f"it is not recorded: {getattr(error, 'strerror', None) or error}")

    def _report(self, name: str, camera: _Camera, why: str) -> None:
        if camera.why != why:
            camera.why = why
            self.trouble(name, why)

    def close(self) -> None:
        """Give all files their names."""
        for name in self._cameras:
            self.over(name)

    # ---- the files

    def trim(self) -> None:
        """Name the files of killed processes, and remove files beyond the limits, if it is time to do so."""
        if time.monotonic() >= self._trim_at_s:
            self._trim_at_s = time.monotonic() + _TRIM_S
            self.sweep(time.time())

    def sweep(self, now_s: float) -> int:
        """Do the work of `trim` at this time (seconds since 1970). Returns the number of removed files."""
        self._name_what_was_left(now_s)
        total, removed = 0, 0
        for path in sorted(self._files("*.mp4"), key=lambda path: (path.parent.name, path.name), reverse=True):
            with suppress(OSError):
                found = path.stat()
                total += found.st_size
                if now_s - found.st_mtime > self.limits.keep_s or total > self.limits.keep_bytes:
                    _remove(path)
                    removed, total = removed + 1, total - found.st_size
        return removed

    def _name_what_was_left(self, now_s: float) -> None:
        growing = {camera.clip.part for camera in self._cameras.values() if camera.clip is not None}
        for part in self._files(f"*.mp4{PART}"):
            with suppress(OSError):
                if part in growing or now_s - part.stat().st_mtime < _LEFT_S:
                    continue
                if plays(part):
                    part.replace(part.with_suffix(""))
                else:
                    _remove(part)

    def _files(self, pattern: str) -> Iterator[Path]:
        return self.folder.glob(f"*/{FOLDER}/????-??-??/{pattern}")


def _remove(path: Path) -> None:
    """Remove a file, and its folder if nothing else is in it."""
    path.unlink(missing_ok=True)
    with suppress(OSError):
        path.parent.rmdir()
