"""Writes one annotated MP4 per camera: boxes, skeletons, track ids, scores, the camera's name and its time; zones and
lines of the rules, the joints that they believe, and which rule fires on whom and why.

    videos: {use: sink_video, from: {frames: capture, tracks: tracks}, with: {path: "videos/{camera}.mp4"}}

The rules are those of the stage `rules` that reads the same tracks, or of the file in `rules`.

`path` may hold {camera}, {run} (the run's name), {date} and {time} (when the file was begun, UTC, by this machine's
clock). A video never takes the place of another file: if its name is taken, `front.2.mp4` follows. A new file also
begins after `segment_minutes`, when the picture's size changes, after a failure, when somebody has taken the present
file away, and when this process was restarted. With `overwrite: true` the videos of a run replace those of earlier
runs. If a run was killed, the next one gives the videos that it left unfinished their names.
"""

from __future__ import annotations

import errno
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import av
import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from camgraph.pipeline.errors import EnvironmentProblem, NeedsNewProcess, UserError
from camgraph.pipeline.messages import End, Message
from camgraph.pipeline.stage import Context, Counts, Ports, Settings, Stage, Upstream
from camgraph.pipeline.system.disk import read_kept, write_whole
from camgraph.pipeline.system.paths import resolve
from camgraph.stages.events import Clock
from camgraph.stages.messages import Frame, Tracks
from camgraph.stages.rules.onlooker import Onlooker, Seen
from camgraph.stages.rules.python_functions import watch_calls
from camgraph.stages.rules.rule_set import RuleSet, parse_rules, read_rules, rules_text
from camgraph.stages.rules.upstream import shown_rules
from camgraph.stages.sinks.writing.annotation import USUAL_CONFIDENCE, annotated
from camgraph.stages.sinks.writing.output_names import GivenNames, OutputNames, free_names, part_of, what_is_wrong
from camgraph.stages.sinks.writing.recording import (
    CodecFamily,
    Encoding,
    Recording,
    Size,
    choose_encoder,
    even_size,
    frames_in,
    rescue,
)
from camgraph.stages.sinks.writing.trails import Trails

SUFFIX = ".mp4"
EXAMPLE = f"videos/{{camera}}{SUFFIX}"
RETRY_NS = 30_000_000_000
"""Stream time until a camera whose file failed is given a new one."""
CALM_NS = 2_000_000_000
"""Stream time in a new file until the failure counts as over: the first frames wait in the encoder."""


class SinkVideoSettings(Settings):
    """The place and look of the videos."""

    path: str = Field(
        "videos/{camera}.mp4",
        description="File of a camera. {camera} becomes its name in ASCII, {run} the run's, {date} and {time} when the "
        "file is begun (UTC, as 2026-11-22 and 10-44-39); if the file exists, a number follows: front.2.mp4",
    )
    overwrite: bool = Field(False, description="Replace the videos of earlier runs instead of counting on behind them")
    max_width: int = Field(1280, ge=64, le=7680, description="Wider pictures are made this wide, in pixels")
    codec: CodecFamily = Field("auto", description="auto uses H.264 if the build has an encoder, else MPEG-4")
    crf: int = Field(23, ge=0, le=51, description="Quality of H.264: lower is better and larger")
    bitrate_kbps: int | None = Field(None, ge=50, description="A fixed rate instead of crf, in kbit/s")
    preset: str = Field("superfast", pattern="^(ultra|super|very)fast$|^faster$|^fast$|^medium$", description="x264's")
    rules: str | None = Field(
        None,
        min_length=1,
        description="The file of rules whose zones, lines and incidents are shown; by default that of the one stage "
        "`rules` that reads the same tracks",
    )
    rules_text: str | None = Field(
        None, description="The text of these rules when the graph was read, filled in automatically; empty: show none"
    )
    rules_clocks: dict[str, Clock] = Field(
        {}, description="Camera -> whose its times are, as the rules count them; filled in automatically"
    )
    min_confidence: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Joints below it are not drawn; by default the least that one of the rules asks for, else 0.3",
    )
    trail_s: float = Field(
        0, ge=0, le=600, description="Draw the way that each person's feet have gone in the last seconds; 0: none"
    )
    segment_minutes: float = Field(60, gt=0, description="A longer video goes on in a new file")

    @field_validator("path")
    @classmethod
    def _names_camera(cls, path: str) -> str:
        problem = what_is_wrong(path, EXAMPLE)
        if not problem and not path.endswith(SUFFIX):
            problem = f"videos are MP4 files: expected a path such as {EXAMPLE}"
        if problem:
            raise ValueError(problem)
        return path


class SinkVideo(Stage[SinkVideoSettings]):
    """One file at a time for each camera. A failing disk costs videos, never the run: it is counted and tried again."""

    settings_type = SinkVideoSettings
    inputs: ClassVar[Ports] = {"frames": Frame, "tracks": Tracks}
    outputs = ()
    counts: ClassVar[Counts] = {"dropped.write_failed": "A video could not be written."}
    stateful = True
    own_thread = True
    takes_settings = True
    lighter = "a smaller `max_width`, or `max_fps`"

    def __init__(self, settings: SinkVideoSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._recordings: dict[str, Recording] = {}
        self._file_names = OutputNames(settings.path, context.graph, context.base_folder)
        self._given = GivenNames()
        self._retry_ns: dict[str, int] = {}
        self._failing: set[str] = set()
        self._trails = Trails(settings.trail_s)
        self._onlooker: Onlooker | None = None
        self._other_rules: RuleSet | None = None
        """Those that the next frame is to be seen by."""

    @classmethod
    def follow(cls, settings: SinkVideoSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        """The rules that judge the same tracks: the video shows these judgements."""
        if settings.rules_text is not None:
            return {}
        if settings.rules is not None:
            return {"rules_text": rules_text(resolve(settings.rules, base_folder))}
        return shown_rules(upstream)

    @classmethod
    def check(cls, settings: SinkVideoSettings, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        """Raises GraphError with the problems of a file of rules."""
        why = OutputNames(settings.path, "", base_folder).why_not_writable()
        if why:
            yield ("path",), why
        if settings.rules is not None:
            read_rules(resolve(settings.rules, base_folder))

    @classmethod
    def written_folders(cls, settings: Any, base_folder: Path) -> Iterable[Path]:
        yield OutputNames(settings.path, "", base_folder).place()

    def open(self) -> None:
        if self.settings.rules_text:
            watch_calls(self.context.state_folder, self.context.worker)
            rules = parse_rules(self.settings.rules_text, self.settings.rules or "the rules")
            self._onlooker = Onlooker(rules, self.settings.rules_clocks)
        self._encoding = self._choose_encoding()
        _check_writable(self._file_names.folder())
        if self.context.incarnation > 1:
            self._given = read_kept(self._given_file, GivenNames.restored, self.context.log.warning) or self._given
        self._rescue()

    def change_settings(self, settings: SinkVideoSettings) -> None:
        """Draw other rules. Raises NeedsNewProcess if anything else is to change."""
        same = settings.model_copy(update={"rules_text": self.settings.rules_text}) == self.settings
        if not (same and self.settings.rules_text and settings.rules_text):
            raise NeedsNewProcess("more than the text of its rules has changed")
        self._other_rules = parse_rules(settings.rules_text, self.settings.rules or "the rules")
        self.settings = settings

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        other, self._other_rules = self._other_rules, None
        if self._onlooker and other:
            self._onlooker.change(other)
        for item in items:
            self._record(item["frames"], item["tracks"])
        return ()

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        self._complete(camera)
        self._trails.forget(camera)
        if self._onlooker:
            self._onlooker.forget(camera)
        return ()

    def close(self) -> None:
        for camera in list(self._recordings):
            self._complete(camera)

    def _choose_encoding(self) -> Encoding:
        settings = self.settings
        encoder = choose_encoder(settings.codec)
        self.context.log.info("video_encoder", encoder=encoder)
        return Encoding(encoder, settings.crf, settings.bitrate_kbps, settings.preset)

    def _record(self, frame: Frame, tracks: Tracks) -> None:
        camera, time_ns = frame.stamp.camera, frame.stamp.time_ns
        # Also of a frame that is not written: the rules have seen it.
        asked = self.context.switches, self.context.resets
        seen = self._onlooker.judge(tracks, *asked) if self._onlooker else Seen()
        trails = self._trails.follow(tracks)
        try:
            if time_ns < self._retry_ns.get(camera, time_ns):
                self.context.count("dropped.write_failed", camera)
                return
            recording = self._recording_for(frame)
            size = fitted((frame.width, frame.height), recording.size) if frame.stamp.alone else recording.size
            picture = annotated(frame, tracks, size, self._floor(camera), seen, trails=trails)
            recording.write(bordered(picture, recording.size), time_ns)
            if camera in self._failing and recording.duration_ns >= CALM_NS:
                self._recovered(camera)
        except (OSError, av.FFmpegError, EnvironmentProblem, UserError) as error:  # UserError: the folder is gone
            self._give_up(camera, error)
            self._retry_ns[camera] = time_ns + RETRY_NS
            self.context.count("dropped.write_failed", camera)

    def _floor(self, camera: str) -> float:
        """The least confidence of a joint that is drawn: who wrote one is believed, else it is that of the rules."""
        if self.settings.min_confidence is not None:
            return self.settings.min_confidence
        return self._onlooker.floor(camera) if self._onlooker else USUAL_CONFIDENCE

    def _recording_for(self, frame: Frame) -> Recording:
        """The camera's open file, or its next one."""
        camera = frame.stamp.camera
        size = even_size((frame.width, frame.height), self.settings.max_width)
        recording = self._recordings.get(camera)
        if recording and recording.is_gone(frame.stamp.time_ns):
            self._give_up(camera, FileNotFoundError(errno.ENOENT, "the file was taken away while it was written"))
            recording = None
        if recording and frame.stamp.alone:  # a show of photographs: upright and wide ones in one file
            size = recording.size
        if recording and not (recording.size == size and self._fits(recording, frame.stamp.time_ns)):
            self._complete(camera)
            recording = None
        return recording or self._start(camera, size)

    def _fits(self, recording: Recording, time_ns: int) -> bool:
        """A camera that was away for long goes on in another file: nobody looks at one picture for hours."""
        longest_ns = self.settings.segment_minutes * 60e9
        return recording.moment_ns(time_ns) <= longest_ns and recording.takes(time_ns)

    def _start(self, camera: str, size: Size) -> Recording:
        first = self._first(camera)
        recording = self._recordings[camera] = self._begun(camera, first, size)
        target = str(recording.target)
        self._given.note(camera, first, recording.target)
        write_whole(self._given_file, json.dumps(self._given.highest).encode())
        self.context.log.info("video_started", camera=camera, path=target, width=size[0], height=size[1])
        return recording

    def _begun(self, camera: str, first: Path, size: Size) -> Recording:
        """A file under the first name that may be had. Raises as `Recording` does."""
        first.parent.mkdir(parents=True, exist_ok=True)
        overwrite = self.settings.overwrite
        for target in self._own_names(camera, first) if overwrite else free_names(first):
            try:
                return Recording(target, size, self._encoding, replace=overwrite)
            except FileExistsError:  # somebody was faster
                continue
        raise AssertionError("names do not end")

    def _first(self, camera: str) -> Path:
        return self._file_names.first(camera, datetime.now(UTC))

    def _own_names(self, camera: str, first: Path) -> Iterator[Path]:
        """Those of files that this run itself has neither written nor is about to: they are never replaced."""
        others = {self._first(other) for other in self.context.cameras if other != camera}
        return self._given.following(camera, first, others)

    def _complete(self, camera: str) -> None:
        recording = self._recordings.get(camera)
        if recording is None:
            return
        try:
            recording.close()
        except (OSError, av.FFmpegError) as error:
            self._give_up(camera, error)
            return
        del self._recordings[camera]
        self._recovered(camera)
        seconds = round(recording.duration_ns / 1e9, 3)
        self.context.wrote(recording.target)
        self.context.log.info("video_done", camera=camera, path=str(recording.target), duration_s=seconds)

    def _recovered(self, camera: str) -> None:
        if camera in self._failing:
            self._failing.discard(camera)
            self.context.trouble("", camera)

    def _give_up(self, camera: str, error: Exception) -> None:
        """Keep the usable part of the camera's file, and report it; the rest of its frames is counted."""
        recording = self._recordings.pop(camera, None)
        target = recording.target if recording else self.settings.path
        self._failing.add(camera)
        self.context.trouble(f"{target}: cannot write the video: {_reason(error)}", camera)
        if recording is None:
            self.context.log.error("video_failed", camera=camera, path="", error=_reason(error))
            return
        kept = recording.abandon()
        frames = frames_in(kept) if kept else 0
        if kept:
            self.context.wrote(kept)
        else:
            self._given.take_back(camera)
        lost = max(0, recording.frames - frames)
        self.context.count("dropped.write_failed", camera, lost)
        self.context.log.error(
            "video_failed",
            camera=camera,
            path=str(recording.target),
            error=_reason(error),
            kept=str(kept or ""),
            kept_frames=frames,
            lost_frames=lost,
        )

    def _rescue(self) -> None:
        """Keep the file that a killed process or run had written."""
        for camera, target in self._file_names.unfinished(self.context.cameras):
            try:
                kept = rescue(target, replace=self.settings.overwrite)
            except OSError as error:
                part = str(part_of(target))
                self.context.log.error("video_failed", camera=camera, path=str(target), error=_reason(error), kept=part)
            else:
                if kept:
                    self.context.wrote(kept)
                    self.context.log.warning("video_interrupted", camera=camera, path=str(target), kept=str(kept))

    @property
    def _given_file(self) -> Path:
        return self.context.state_folder / f"videos.{self.context.worker}.json"


def fitted(size: Size, into: Size) -> Size:
    """The size (width, height) of a picture of `size` that is made smaller until it lies within `into`."""
    scale = min(1.0, into[0] / size[0], into[1] / size[1])
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def bordered(picture: NDArray[np.uint8], size: Size) -> NDArray[np.uint8]:
    """The picture (H, W, 3) in the middle of a black one of `size` (width, height), which is no smaller."""
    height, width = size[1] - picture.shape[0], size[0] - picture.shape[1]
    if height == width == 0:
        return picture
    top, left = height // 2, width // 2
    whole = cv2.copyMakeBorder(picture, top, height - top, left, width - left, cv2.BORDER_CONSTANT)
    return np.asarray(whole, np.uint8)


def _check_writable(folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise EnvironmentProblem(
            f"{folder}: cannot write videos here: {error.strerror}; change its permissions, or set another path",
            error_id="cannot-write",
        ) from error


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
