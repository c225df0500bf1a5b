"""Watching a camera ends with its last viewer, whatever comes from the camera at that moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from camgraph.stages.video.packets import Packet
from camgraph.tools.service.live import watching
from camgraph.tools.service.live.watching import WatchedCamera


class Silent:
    """A viewer."""

    def end(self) -> None: ...

    async def pieces(self) -> AsyncIterator[bytes]:
        for piece in ():
            yield piece


class Watched(WatchedCamera[Silent]):
    """A camera of which nothing is shown."""

    def take(self, packet: Packet) -> None: ...

    def admit(self, viewer: Silent) -> None: ...


@pytest.mark.parametrize("turns", range(6))
def test_the_last_viewer_may_leave_as_data_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    """Several turns of the loop lie between the data and the task that has waited for the data."""

    async def leave_so_late() -> None:
        reader = asyncio.StreamReader()

        async def connected(_: str) -> tuple[asyncio.StreamReader, SimpleNamespace]:
            return reader, SimpleNamespace(close=lambda: None)

        monkeypatch.setattr(watching.asyncio, "open_unix_connection", connected)
        camera, viewer = Watched(tmp_path / "c", lambda: None, silent_s=3600.0), Silent()
        camera.join(viewer)
        for _ in range(10):
            await asyncio.sleep(0)
        reader.feed_data(b"\0")
        for _ in range(turns):
            await asyncio.sleep(0)
        camera.leave(viewer)
        done, _ = await asyncio.wait([camera._task], timeout=10.0)  # nobody else can tell that it reads no more
        assert done

    asyncio.run(leave_so_late())
