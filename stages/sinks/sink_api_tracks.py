"""Hands the people of each frame to the program that has started the run. The Python API adds it to the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from camgraph.pipeline.messages import Message
from camgraph.pipeline.stage import Context, Counts, Stage
from camgraph.stages.messages import Tracks
from camgraph.stages.sinks.handover.feed import NOT_READ, Feed
from camgraph.stages.sinks.handover.link import HandoverSettings
from camgraph.stages.sinks.handover.parcel import own_tracks, tracks_parcel


class SinkApiTracks(Stage[HandoverSettings]):
    """Tracks -> the program, at its pace."""

    settings_type = HandoverSettings
    inputs = Tracks
    outputs = ()
    counts: ClassVar[Counts] = NOT_READ
    own_thread = True
    added_by_itself = True

    def __init__(self, settings: HandoverSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._feed: Feed[Tracks] = Feed(settings.address, context, keep=own_tracks, pack=tracks_parcel)

    def open(self) -> None:
        self._feed.open()

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        for tracks in items:
            self._feed.offer(tracks.stamp, tracks)
        return ()

    def close(self) -> None:
        self._feed.close()
