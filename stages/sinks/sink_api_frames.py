"""Hands pictures and people to the program that has started the run. The Python API adds this sink to the graph.

Annotated pictures look like those of `sink_video`: drawn by the rules of the `rules` stage that reads the same tracks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from camgraph.pipeline.errors import NeedsNewProcess
from camgraph.pipeline.messages import End, Message, Stamp
from camgraph.pipeline.stage import Context, Counts, Ports, Stage, Upstream
from camgraph.stages.events import Clock
from camgraph.stages.messages import Frame, Tracks
from camgraph.stages.rules.onlooker import Onlooker, Seen
from camgraph.stages.rules.python_functions import watch_calls
from camgraph.stages.rules.rule_set import RuleSet, parse_rules
from camgraph.stages.rules.upstream import shown_rules
from camgraph.stages.sinks.handover.feed import NOT_READ, Feed
from camgraph.stages.sinks.handover.link import HandoverSettings
from camgraph.stages.sinks.handover.parcel import Parcel, own_tracks, tracks_parcel
from camgraph.stages.sinks.writing.annotation import USUAL_CONFIDENCE, annotated, bgr
from camgraph.stages.sinks.writing.recording import even_size
from camgraph.stages.sinks.writing.trails import Trails
from camgraph.stages.vision.drawing import Trail


class SinkApiFramesSettings(HandoverSettings):
    """How to make the pictures."""

    annotated: bool = Field(True, description="Draw people, zones and incidents into the pictures")
    max_width: int | None = Field(None, ge=16, description="Scale wider pictures down to this width, in pixels")
    trail_s: float = Field(0, ge=0, le=600, description="Draw the ways of the last seconds; 0: none")
    rules_text: str | None = Field(None, description="The rules whose incidents to draw; filled in automatically")
    rules_clocks: dict[str, Clock] = Field(
        {}, description="Camera -> whose its times are, as the rules count them; filled in automatically"
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """A frame, its people, and the zones, incidents and ways to draw."""

    frame: Frame
    tracks: Tracks
    seen: Seen
    trails: Sequence[Trail] = ()


class SinkApiFrames(Stage[SinkApiFramesSettings]):
    """Frames with their tracks -> the program, at its pace. Pictures are drawn when they are sent."""

    settings_type = SinkApiFramesSettings
    inputs: ClassVar[Ports] = {"frames": Frame, "tracks": Tracks}
    outputs = ()
    counts: ClassVar[Counts] = NOT_READ
    own_thread = True
    takes_settings = True
    added_by_itself = True
    lighter = "a smaller `max_width`, or `max_fps`"

    def __init__(self, settings: SinkApiFramesSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._feed: Feed[_Look] = Feed(settings.address, context, keep=_own, pack=self._pack)
        self._onlooker: Onlooker | None = None
        self._other_rules: RuleSet | None = None
        """Those that the next frame is to be seen by."""
        self._trails = Trails(settings.trail_s if settings.annotated else 0)
        self._seen: tuple[Stamp | None, Seen, Sequence[Trail]] = (None, Seen(), ())

    @classmethod
    def follow(cls, settings: SinkApiFramesSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        return shown_rules(upstream) if settings.annotated and settings.rules_text is None else {}

    def open(self) -> None:
        if self.settings.rules_text:
            watch_calls(self.context.state_folder, self.context.worker)
            rules = parse_rules(self.settings.rules_text, "the rules")
            self._onlooker = Onlooker(rules, self.settings.rules_clocks)
        self._feed.open()

    def change_settings(self, settings: SinkApiFramesSettings) -> None:
        """Draw other rules. Raises NeedsNewProcess if anything else is to change."""
        same = settings.model_copy(update={"rules_text": self.settings.rules_text}) == self.settings
        if not (same and self.settings.rules_text and settings.rules_text):
            raise NeedsNewProcess("more than the text of its rules has changed")
        self._other_rules = parse_rules(settings.rules_text, "the rules")
        self.settings = settings

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        other, self._other_rules = self._other_rules, None
        if self._onlooker and other:
            self._onlooker.change(other)
        for item in items:
            look = self._looked(item["frames"], item["tracks"])
            self._feed.offer(look.frame.stamp, look)
        return ()

    def _looked(self, frame: Frame, tracks: Tracks) -> _Look:
        """Evaluate the rules once for each frame, even if the frame comes again."""
        if self._seen[0] != frame.stamp:
            asked = self.context.switches, self.context.resets
            seen = self._onlooker.judge(tracks, *asked) if self._onlooker else Seen()
            self._seen = (frame.stamp, seen, self._trails.follow(tracks))
        return _Look(frame, tracks, *self._seen[1:])

    def _pack(self, look: _Look, skipped: int) -> Parcel:
        frame = look.frame
        size, most = (frame.width, frame.height), self.settings.max_width
        size = even_size(size, most) if most and size[0] > most else size
        if not self.settings.annotated:
            return tracks_parcel(look.tracks, skipped, bgr(frame, size))
        floor = self._onlooker.floor(frame.stamp.camera) if self._onlooker else USUAL_CONFIDENCE
        drawn = annotated(frame, look.tracks, size, floor, look.seen, trails=look.trails)
        return tracks_parcel(look.tracks, skipped, drawn)

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        self._trails.forget(camera)
        if self._onlooker:
            self._onlooker.forget(camera)
        return ()

    def close(self) -> None:
        self._feed.close()


def _own(look: _Look) -> _Look:
    """Copy a frame and its tracks, so that they outlive the call of `process`."""
    frame = replace(look.frame, pixels=look.frame.pixels.copy())
    return _Look(frame, own_tracks(look.tracks), look.seen, look.trails)
