"""Numbers into events, and both into files."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from camgraph.pipeline.errors import BadItem, Unavailable
from camgraph.pipeline.messages import LONGEST_BODY, End, Event, Message
from camgraph.pipeline.stage import Context, Counts, Settings, Stage
from camgraph.pipeline.system.paths import resolve
from camgraph_test_stages.messages import Number
from camgraph_test_stages.waiting import until


class EmitSettings(Settings):
    """Which frames make an event."""

    every: int = Field(1, ge=1, description="Frames whose seq is a multiple of this.")


class Emit(Stage[EmitSettings]):
    """Events whose ids and bodies depend on nothing but the frame."""

    settings_type = EmitSettings
    inputs = Number
    outputs = (Event,)

    def process(self, items: Sequence[Number]) -> Iterable[Message]:
        for item in items:
            item.verify()
            camera, epoch, seq = item.stamp[:3]
            if seq % self.settings.every == 0:
                event_id = hashlib.sha256(f"{self.context.stage} {camera} {epoch} {seq}".encode()).hexdigest()[:16]
                body = json.dumps({"id": event_id, "camera": camera, "epoch": epoch, "seq": seq, "value": item.value})
                yield Event(item.stamp, event_id, event_id, "single", body.encode())


class CollectSettings(Settings):
    """Where to write."""

    path: str = Field(description="A file; lines are appended.")
    cost_ms: float = Field(0.0, ge=0, description="What one batch takes.")
    away: str = Field("", description="While there is a file of this name, nothing is taken; empty: always.")


class _Collecting(Stage[Any]):
    """Appends one line an item, on the disk before the call returns; leaves nothing out."""

    settings: Any

    def open(self) -> None:
        path = resolve(self.settings.path, self.context.base_folder)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def _write(self, lines: Iterable[str]) -> None:
        if self.settings.away and resolve(self.settings.away, self.context.base_folder).exists():
            raise Unavailable(f"the file {self.settings.away} is there")
        time.sleep(self.settings.cost_ms / 1e3)
        os.write(self._file, "".join(f"{line}\n" for line in lines).encode())
        os.fsync(self._file)

    def close(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)


class Collect(_Collecting):
    """Writes `camera epoch seq value` for each number."""

    settings_type = CollectSettings
    inputs = Number

    def process(self, items: Sequence[Number]) -> Iterable[Message]:
        for item in items:
            item.verify()
        self._write(f"{item.stamp.camera} {item.stamp.epoch} {item.stamp.seq} {item.value}" for item in items)
        return ()


class CollectEventsSettings(CollectSettings):
    """Where to write, and in which order."""

    order: Literal["arrival", "time"] = Field("arrival", description="As they come, or by time over all cameras.")
    refuses: int = Field(0, ge=0, description="Events of frames whose seq is a multiple of this are refused; 0: none.")
    dies_of: int = Field(-1, description="The frame whose event kills its process; -1: none.")
    waits_for: str = Field("", description="A file; until it is there, the first call does not end.")
    calls: str = Field("", description="A file, for how many events each call had.")


class CollectEvents(_Collecting):
    """Writes `camera epoch seq value id` for each event."""

    settings_type = CollectEventsSettings
    inputs = Event
    counts: ClassVar[Counts] = {"dropped.refused": "An event was refused, as the settings say."}

    @classmethod
    def ordered_by_time(cls, settings: CollectEventsSettings) -> bool:
        return settings.order == "time"

    def process(self, items: Sequence[Event]) -> Iterable[Message]:
        folder = self.context.base_folder
        if self.settings.waits_for:
            until((folder / self.settings.waits_for).exists)
        if self.settings.calls:
            with (folder / self.settings.calls).open("a") as file:
                file.write(f"{len(items)}\n")
        bodies = [json.loads(item.body) for item in items]
        for body in bodies:
            if self.settings.refuses and body["seq"] % self.settings.refuses == 0:
                raise BadItem("refused", f"{body['id']} is not for us")
            if body["seq"] == self.settings.dies_of:
                os.kill(os.getpid(), signal.SIGKILL)
        self._write("{camera} {epoch} {seq} {value} {id}".format(**body) for body in bodies)
        return ()


class CommentSettings(Settings):
    """When it comments."""

    after_s: float = Field(0.0, ge=0, description="So long after it got an event.")
    at_end: bool = Field(False, description="Only when it gets no more events.")
    body: Literal["whole", "without_id", "no_json", "too_large"] = Field("whole", description="Of its comments.")


class Comment(Stage[CommentSettings]):
    """Takes events, and gives the outbox a comment on each of them, later and from a thread of its own."""

    settings_type = CommentSettings
    inputs = Event
    emits = True
    own_thread = True

    def __init__(self, settings: CommentSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._late: list[threading.Thread] = []
        self._kept: list[Event] = []

    def process(self, items: Sequence[Event]) -> Iterable[Message]:
        for item in items:
            if self.settings.at_end:
                self._kept.append(item)
            elif self.settings.after_s:
                self._late.append(threading.Thread(target=self._comment_later, args=(item,)))
                self._late[-1].start()
            else:
                self.context.emit(self._comment_on(item))
        return ()

    def _comment_later(self, event: Event) -> None:
        time.sleep(self.settings.after_s)
        self.context.emit(self._comment_on(event))

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        while self._kept:
            self.context.emit(self._comment_on(self._kept[0]))
            del self._kept[0]
        for thread in self._late:
            thread.join()
        return ()

    def _comment_on(self, event: Event) -> Event:
        event_id = hashlib.sha256(f"comment on {event.own_id}".encode()).hexdigest()[:16]
        body = {**json.loads(event.body), "id": event_id, "on": event.own_id}
        stamp = event.stamp._replace(camera=body["camera"])
        if self.settings.body == "without_id":
            del body["id"]
        if self.settings.body == "too_large":
            body["text"] = "x" * LONGEST_BODY
        text = "no JSON" if self.settings.body == "no_json" else json.dumps(body)
        return Event(stamp, event_id, event_id, "single", text.encode())
