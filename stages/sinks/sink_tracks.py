"""Writes the people of each camera's frames, with their ids, into a file: tracks as a product of their own.

    paths: {use: sink_tracks, from: tracks, with: {path: "tracks/{camera}.txt"}}

The end of `path` chooses the format, unless `format` does:

    .txt       mot      MOTChallenge: frame, id, left, top, width, height, score, -1, -1, -1 for each person; `frame`
                        is `seq` + 1, so in a video 1 is its first frame, whatever `max_fps` leaves out
    .jsonl     jsonl    a line for each frame: camera, epoch, seq, times, and its people as events have them

`path` may hold {camera}, {run}, {date} and {time}, as in `sink_video`. A file never takes the place of another; if its
name is taken, `front.2.txt` follows. A new file also begins after `segment_minutes`, and with each epoch in the format
mot (its frames have no epoch). Until it is complete, a file's name ends with `.part`.

The same frames make the same bytes. Each frame is written once: a restarted process goes on with the file of its
predecessor, and knows the frames that it holds. If a run was killed, the next one completes the files that it left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, ClassVar

from pydantic import Field, model_validator

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.messages import End, Message, Stamp
from camgraph.pipeline.stage import Context, Counts, FrameSize, Settings, Stage
from camgraph.pipeline.system.disk import read_kept, write_whole
from camgraph.stages.messages import Tracks
from camgraph.stages.sinks.writing.output_names import GivenNames, OutputNames, free_names, part_of, what_is_wrong
from camgraph.stages.sinks.writing.track_files import SUFFIXES, Format, TrackFile, rescued
from camgraph.stages.sinks.writing.track_lines import Place

LOOK_NS = 1_000_000_000
_FORMATS: dict[str, Format] = {suffix: form for form, suffix in SUFFIXES.items()}


class SinkTracksSettings(Settings):
    """The place and form of the files."""

    path: str | None = Field(
        None,
        min_length=1,
        description="File of a camera, by default tracks/{camera}.jsonl or as the format has it. {camera} becomes its "
        "name in ASCII, {run} the run's, {date} and {time} when the file is begun (UTC); if the file exists, a number "
        "follows: front.2.jsonl. A graph with one camera may leave {camera} out",
    )
    format: Format | None = Field(
        None,
        description="By default as the path ends: .txt is mot (MOTChallenge), .jsonl is jsonl",
    )
    overwrite: bool = Field(False, description="Replace the files of earlier runs instead of counting on behind them")
    segment_minutes: float | None = Field(
        None, gt=0, description="Longer tracks go on in a new file; by default all of a run are in one"
    )

    @model_validator(mode="after")
    def _names_format(self) -> SinkTracksSettings:
        problem = what_is_wrong(self.template, f"tracks/{{camera}}{SUFFIXES[self.form]}", names_camera=False)
        implied = self.path and _FORMATS.get(PurePath(self.path).suffix)
        if self.path and not problem and self.format is None and implied is None:
            known = ", ".join(_FORMATS)
            problem = f"{self.path}: its end names no format; expected {known}, or `format` beside it"
        if not problem and self.format and implied and implied != self.format:
            problem = f"{self.path}: its end says {implied}, and `format` says {self.format}: change one of them"
        if not problem and not PurePath(self.template).suffix:
            problem = f"{self.path}: has no end such as {SUFFIXES[self.form]}; add one"
        if problem:
            raise ValueError(problem)
        return self

    @property
    def form(self) -> Format:
        """The format, also if only the path tells it."""
        return self.format or _FORMATS.get(PurePath(self.path or "").suffix, "jsonl")

    @property
    def template(self) -> str:
        return self.path or f"tracks/{{camera}}{SUFFIXES[self.form]}"


@dataclass(slots=True)
class _State:
    """Of one camera, for a restarted process."""

    current: str = ""
    """The file that grows; "" if none does."""
    epoch: int = 0
    """Of its first frame."""
    first_ns: int = 0
    """The stream time of its first frame, put back by the length of each round of a file since."""
    last_ns: int = 0
    """The stream time of the last frame that was seen."""
    last: list[int] | None = None
    """Epoch and number of the last frame in complete files."""


def _restored(saved: Any) -> tuple[dict[str, _State], GivenNames]:
    """What the process before has left, from JSON."""
    states = {camera: _State(**state) for camera, state in saved["cameras"].items()}
    return states, GivenNames.restored(saved["given"])


class SinkTracks(Stage[SinkTracksSettings]):
    """Tracks -> rows in a file for each camera. While the disk is full, frames wait."""

    settings_type = SinkTracksSettings
    inputs = Tracks
    outputs = ()
    counts: ClassVar[Counts] = {
        "written": "Frames of which `sink_tracks` has written the people.",
        "repeated": "Frames that a sink had before, and did not add again.",
        "dropped.file_gone": "A file of tracks was taken away while it was written, and this frame with it.",
    }
    own_thread = True

    def __init__(self, settings: SinkTracksSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._names = OutputNames(settings.template, context.graph, context.base_folder)
        self._given = GivenNames()
        self._files: dict[str, TrackFile] = {}
        self._states: dict[str, _State] = {}
        self._written: dict[str, Place] = {}
        """The last frame of each camera that is in a file."""
        self._failing: set[str] = set()
        """Cameras that lost a file, until the next one is seen in its place."""
        self._frames: dict[str, int] = {}
        """How many this process has written into the present file of each camera."""
        self._looked_ns: dict[str, int] = {}
        """The stream time at which each camera's file was last seen in its place."""

    @classmethod
    def check(cls, settings: SinkTracksSettings, base_folder: Path) -> Iterable[tuple[tuple[str, ...], str]]:
        why = OutputNames(settings.template, "", base_folder).why_not_writable()
        if why:
            yield ("path",), why

    @classmethod
    def check_cameras(
        cls, settings: SinkTracksSettings, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[tuple[tuple[str, ...], str]]:
        path = settings.template
        if len(cameras) > 1 and "{camera}" not in path:
            end = PurePath(path).suffix
            example = f"{path.removesuffix(end)}.{{camera}}{end}"
            yield ("path",), f"{path}: without {{camera}} all {len(cameras)} cameras would write one file: {example}"

    @classmethod
    def written_folders(cls, settings: Any, base_folder: Path) -> Iterable[Path]:
        yield OutputNames(settings.template, "", base_folder).place()

    def open(self) -> None:
        self._names.folder()
        if self.context.incarnation > 1:
            kept = read_kept(self._state_file, _restored, self.context.log.warning)
            self._states, self._given = kept or (self._states, self._given)
        for camera, state in self._states.items():
            self._resume(camera, state)
        self._rescue()

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        """Raises EnvironmentProblem when the disk fails; frames that are written by then are known the next time."""
        for tracks in items:
            camera = tracks.stamp.camera
            if not self._is_new(tracks):
                self.context.count("repeated", camera)
                continue
            with self._troubles(camera):
                file = self._file_for(tracks)
                file.append(tracks)
            self._written[camera] = tracks.stamp.place
            self._frames[camera] = self._frames.get(camera, 0) + 1
            self.context.count("written", camera)
        return ()

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        with self._troubles(camera):
            self._complete(camera)
            if end.reason == "removed" and camera in self._states:
                self._states[camera].last = None  # one of the same name that comes later begins anew
                self._save(self._states)
        self._written.pop(camera, None)
        self._looked_ns.pop(camera, None)
        return ()

    def close(self) -> None:
        for camera, file in list(self._files.items()):
            try:
                self._complete(camera)
            except (OSError, EnvironmentProblem) as error:
                part = str(part_of(file.target))
                self.context.log.error("tracks_unfinished", camera=camera, error=str(error), kept=part)
            file.close()
        self._files.clear()

    @contextmanager
    def _troubles(self, camera: str) -> Iterator[None]:
        """Errors of the disk become EnvironmentProblem."""
        try:
            yield
        except (OSError, UserError) as error:  # UserError: the folder is gone
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise EnvironmentProblem(
                f"{self.settings.template}: cannot write the tracks of {camera}: {why}; frames wait: free some space, "
                "or mend the disk",
                error_id="cannot-write",
            ) from error

    def _is_new(self, tracks: Tracks) -> bool:
        """Whether the frame, or some people of it, may be missing in the files."""
        camera, place = tracks.stamp.camera, tracks.stamp.place
        file, last = self._files.get(camera), self._written.get(camera)
        return last is None or place > last or (file is not None and place == file.torn)

    def _file_for(self, tracks: Tracks) -> TrackFile:
        """The camera's present file, or its next one. Raises OSError, UserError, EnvironmentProblem."""
        file = self._files.get(tracks.stamp.camera)
        if file:
            self._pass_time(tracks.stamp)
            if self._is_gone(file, tracks.stamp):
                self._lose(tracks.stamp.camera, file)
                return self._begin(tracks)
            if self._fits(tracks):
                return file
        self._complete(tracks.stamp.camera)
        return self._begin(tracks)

    def _is_gone(self, file: TrackFile, stamp: Stamp) -> bool:
        """Whether the file was taken away; looks once a second of stream time, and sees when it is well again."""
        if 0 <= stamp.time_ns - self._looked_ns.get(stamp.camera, -LOOK_NS) < LOOK_NS:
            return False
        self._looked_ns[stamp.camera] = stamp.time_ns
        gone = file.is_gone
        if not gone and stamp.camera in self._failing:
            self._failing.discard(stamp.camera)
            self.context.trouble("", stamp.camera)
        return gone

    def _lose(self, camera: str, file: TrackFile) -> None:
        """Count the frames of a file that somebody took away, and let go of it."""
        part, frames = part_of(file.target), self._frames.pop(camera, 0)
        self.context.log.error("tracks_file_gone", camera=camera, path=str(part), lost_frames=frames)
        self.context.count("dropped.file_gone", camera, max(1, frames))
        self.context.trouble(f"{part}: was taken away while it was written; its frames are lost", camera)
        self._failing.add(camera)
        self._given.take_back(camera)
        file.close()
        del self._files[camera]

    def _pass_time(self, stamp: Stamp) -> None:
        """In each round of a file stream time begins anew; the length of what is written goes on."""
        state = self._states[stamp.camera]
        back_ns, state.last_ns = state.last_ns - stamp.time_ns, stamp.time_ns
        if back_ns > 0:
            state.first_ns -= back_ns
            if self.settings.segment_minutes is not None:
                self._save(self._states)

    def _fits(self, tracks: Tracks) -> bool:
        """Whether the frame belongs into the present file of its camera."""
        stamp, state = tracks.stamp, self._states[tracks.stamp.camera]
        most = self.settings.segment_minutes
        late = most is not None and stamp.time_ns - state.first_ns > most * 60e9
        another = self.settings.form == "mot" and stamp.epoch != state.epoch
        return not (late or another)

    def _begin(self, tracks: Tracks) -> TrackFile:
        stamp = tracks.stamp
        before = self._states.get(stamp.camera, _State())
        first = self._first(stamp.camera)
        file = self._made(stamp, first)
        state = _State(str(file.target), stamp.epoch, stamp.time_ns, stamp.time_ns, before.last)
        self._given.note(stamp.camera, first, file.target)
        try:
            self._save({**self._states, stamp.camera: state})
        except BaseException:
            self._given.take_back(stamp.camera)
            part_of(file.target).unlink(missing_ok=True)
            file.close()
            raise
        self._states[stamp.camera] = state
        self._frames[stamp.camera], self._looked_ns[stamp.camera] = 0, stamp.time_ns
        self._files[stamp.camera] = file
        self.context.log.info("tracks_started", camera=stamp.camera, path=str(file.target))
        return file

    def _made(self, stamp: Stamp, first: Path) -> TrackFile:
        """A file under the first name that may be had. Raises as `GrowingFile` does."""
        first.parent.mkdir(parents=True, exist_ok=True)
        for target in self._own_names(stamp.camera, first) if self.settings.overwrite else free_names(first):
            try:
                return TrackFile(target, self.settings.form, stamp.epoch, replace=self.settings.overwrite)
            except FileExistsError:  # somebody was faster
                continue
        raise AssertionError("names do not end")

    def _first(self, camera: str) -> Path:
        return self._names.first(camera, datetime.now(UTC))

    def _own_names(self, camera: str, first: Path) -> Iterator[Path]:
        """Those of files that this run itself has neither written nor is about to: they are never replaced."""
        others = {self._first(other) for other in self.context.cameras if other != camera}
        return self._given.following(camera, first, others)

    def _complete(self, camera: str) -> None:
        """Give the camera's file its name. Raises OSError, EnvironmentProblem; then it can be tried again."""
        file, state = self._files.get(camera), self._states.get(camera)
        if file is None or state is None:
            return
        # Noted first: a file that is found and not noted is completed, and nothing is added to it.
        last = self._written.get(camera)
        state.current, state.last = "", list(last) if last else None
        self._save(self._states)
        try:
            path = file.complete()
        except FileNotFoundError:
            self._lose(camera, file)
        else:
            self.context.wrote(path)
            self.context.log.info("tracks_done", camera=camera, path=str(path))
            del self._files[camera]

    def _resume(self, camera: str, state: _State) -> None:
        """Go on with the file of the process before this one."""
        if state.last:
            self._written[camera] = state.last[0], state.last[1]
        if not state.current:
            return
        try:
            replace = self.settings.overwrite
            file = TrackFile.resumed(Path(state.current), self.settings.form, state.epoch, replace=replace)
        except (OSError, EnvironmentProblem) as error:
            self.context.log.error("tracks_not_resumed", camera=camera, path=state.current, error=str(error))
            state.current = ""
            return
        self._files[camera] = file
        if file.last:
            self._written[camera] = file.last
        self.context.log.info("tracks_resumed", camera=camera, path=state.current, last=file.last)

    def _rescue(self) -> None:
        """Complete the files that a killed run has left."""
        own = {state.current for state in self._states.values()}
        for camera, target in self._names.unfinished(self.context.cameras):
            if str(target) in own:
                continue
            try:
                kept = rescued(self.settings.form, target, replace=self.settings.overwrite)
            except (OSError, EnvironmentProblem) as error:  # that of a living run, too
                part = str(part_of(target))
                self.context.log.warning("tracks_left_unfinished", camera=camera, path=part, error=str(error))
                continue
            if kept:
                self.context.wrote(kept)
                self.context.log.warning("tracks_interrupted", camera=camera, path=str(target), kept=str(kept))

    def _save(self, states: Mapping[str, _State]) -> None:
        cameras = {camera: asdict(state) for camera, state in states.items()}
        write_whole(self._state_file, json.dumps({"cameras": cameras, "given": self._given.highest}).encode())

    @property
    def _state_file(self) -> Path:
        return self.context.state_folder / f"tracks.{self.context.worker}.json"
