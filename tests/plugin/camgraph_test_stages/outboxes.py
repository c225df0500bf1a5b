"""Outboxes by themselves, without a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Event
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.testing import HandContext, stamp


def make_event(seq: int, camera: str = "cam", *, phase: Any = "single", incident: str = "", size: int = 0) -> Item:
    """An event `e<seq>` of a camera, of about so many bytes."""
    body = b'{"seq":%d,"camera":"%s","text":"%s"}' % (seq, camera.encode(), b"x" * size)
    event = Event(stamp(seq, camera), f"e{seq}", incident or f"i{seq}", phase, body)
    return Item(camera, Key(0, seq, 0), event, "rules")


def open_outbox(
    folder: Path,
    sinks: Sequence[str] = ("log",),
    *,
    run: int = 1,
    incarnation: int = 1,
    wall_ns: Callable[[], int] | None = None,
    **settings: Any,
) -> Outbox:
    """The outbox in this folder, opened by a process of this run."""
    values = {"path": str(folder / "outbox.sqlite"), "sinks": {sink: [] for sink in sinks}, **settings}
    state = folder / "states" / f"run{run}"
    state.mkdir(parents=True, exist_ok=True)
    context = HandContext(folder, state, incarnation=incarnation)
    clock = {"wall_ns": wall_ns} if wall_ns else {}
    outbox = Outbox(Outbox.settings_type.model_validate(values), context, **clock)
    outbox.open()
    return outbox


def crash(outbox: Outbox) -> None:
    """As its process dies: nothing is noted and nothing tidied up."""
    outbox._close_file()


def pull_ids(outbox: Outbox, sink: str = "log", most: int = 1000) -> list[str]:
    """The ids of the events that a sink gets next."""
    return [event.id for _, event in outbox.pull(sink, most)]


def deliver(outbox: Outbox, sink: str = "log", most: int = 1000) -> list[str]:
    """The ids of the events that a sink takes next."""
    rows = outbox.pull(sink, most)
    outbox.acknowledge(sink, [row for row, _ in rows])
    outbox.note_delivered()
    return [event.id for _, event in rows]


def fill(folder: Path) -> Path:
    """What another program writes until nothing is left."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("ab") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    return ballast
