"""Hands each frame's picture and people to the program that has started the run. The Python API puts it into a graph.

Annotated, it draws as `sink_video` does: by the rules of the stage `rules` that reads the same tracks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from pipeline.messages import End, Message, Stamp
from pipeline.stage import Context, Ports, Stage, Upstream
from stages.handover.feed import Feed
from stages.handover.link import HandoverSettings
from stages.handover.parcel import Parcel, own_tracks, tracks_parcel
from stages.messages import Frame, Tracks
from stages.rulebook.onlooker import Onlooker, Seen
from stages.rulebook.rule_set import parse_rules
from stages.writing.annotation import USUAL_CONFIDENCE, annotated, bgr
from stages.writing.recording import even_size


class SinkApiFramesSettings(HandoverSettings):
    """How the pictures look."""

    annotated: bool = Field(True, description="Draw people, zones and incidents into the pictures")
    max_width: int | None = Field(None, ge=16, description="Wider pictures are made this wide, in pixels")
    rules_text: str | None = Field(None, description="The rules whose incidents are shown; filled in by itself")


@dataclass(frozen=True, slots=True)
class _Look:
    """A frame, its people, and what the rules see."""

    frame: Frame
    tracks: Tracks
    seen: Seen


class SinkApiFrames(Stage[SinkApiFramesSettings]):
    """Frames with their tracks -> the program, at its pace. Pictures are drawn when they are sent."""

    settings_type = SinkApiFramesSettings
    inputs: ClassVar[Ports] = {"frames": Frame, "tracks": Tracks}
    outputs = ()
    own_thread = True
    added_by_itself = True
    lighter = "a smaller `max_width`, or `max_fps`"

    def __init__(self, settings: SinkApiFramesSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._feed: Feed[_Look] = Feed(settings.address, context, keep=_own, pack=self._pack)
        self._onlooker: Onlooker | None = None
        self._seen: tuple[Stamp | None, Seen] = (None, Seen())

    @classmethod
    def follow(cls, settings: SinkApiFramesSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        judging = [said["rules"] for said in upstream.beside.values() if "rules" in said]
        wanted = settings.annotated and settings.rules_text is None and len(judging) == 1
        return {"rules_text": judging[0]["text"]} if wanted else {}

    def open(self) -> None:
        if self.settings.rules_text:
            self._onlooker = Onlooker(parse_rules(self.settings.rules_text, "the rules"))
        self._feed.open()

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        for item in items:
            look = self._looked(item["frames"], item["tracks"])
            self._feed.offer(look.frame.stamp, look)
        return ()

    def _looked(self, frame: Frame, tracks: Tracks) -> _Look:
        """The rules look at each frame once, although it may be handed in again."""
        if self._seen[0] != frame.stamp:
            self._seen = (frame.stamp, self._onlooker.look(tracks) if self._onlooker else Seen())
        return _Look(frame, tracks, self._seen[1])

    def _pack(self, look: _Look, skipped: int) -> Parcel:
        frame = look.frame
        size, most = (frame.width, frame.height), self.settings.max_width
        size = even_size(size, most) if most and size[0] > most else size
        if not self.settings.annotated:
            return tracks_parcel(look.tracks, skipped, bgr(frame, size))
        floor = self._onlooker.floor(frame.stamp.camera) if self._onlooker else USUAL_CONFIDENCE
        return tracks_parcel(look.tracks, skipped, annotated(frame, look.tracks, size, floor, look.seen))

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        if self._onlooker:
            self._onlooker.forget(camera)
        return ()

    def close(self) -> None:
        self._feed.close()


def _own(look: _Look) -> _Look:
    """A copy that outlives the call."""
    frame = replace(look.frame, pixels=look.frame.pixels.copy())
    return _Look(frame, own_tracks(look.tracks), look.seen)
