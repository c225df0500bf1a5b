"""The program's end of a sink of `import camgraph`: an inbox that a test reads, and tracks to send to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from camgraph.inbox import Board, Inbox
from camgraph.pictures import frame_of
from camgraph.stages import testing
from camgraph.stages.messages import Tracks
from camgraph_test_stages.waiting import until


def tracks(seq: int, camera: str = "cam") -> Tracks:
    """One person in a frame of 96 x 64, whose id is the number of the frame."""
    return testing.tracks({seq: (8, 8, 40, 56)}, seq, camera, frame_size=(96, 64))


def listening(folder: Path, mode: str) -> Inbox[Any]:
    """An inbox of frames at the socket `folder/s`. `mode`: `every` or `newest`."""
    inbox: Inbox[Any] = Inbox("x", Board(), window=2, read=frame_of, identity=lambda one: (one.camera, one.seq))
    inbox.listen(folder / "s", mode)
    return inbox


def taken(inbox: Inbox[Any]) -> Any:
    """Acknowledge the last frame, ask for the next one, and wait for it."""
    with inbox.board.lock:
        inbox.confirm()
        inbox.ask()
    until(lambda: _has_item(inbox))
    with inbox.board.lock:
        return inbox.take()


def _has_item(inbox: Inbox[Any]) -> bool:
    with inbox.board.lock:
        return inbox.arrival is not None
