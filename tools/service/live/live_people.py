"""The people of a camera as they are seen, for those who look: lines from all stages `rules` of the run.

To each line its stage is added: `{"stage": "actions", "epoch": ...}`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path

from pipeline.system.local_socket import short_address

MOST_VIEWERS = 64
_MOST_LINE = 4 << 20
_MOST_WAITING = 16
"""Lines of one who looks; the stage parts with those who are far behind."""
_HEARTBEAT_S = 15.0
_AGAIN_S = 3.0


class LivePeople:
    """For one loop."""

    def __init__(self) -> None:
        self.viewers = 0

    async def lines(self, paths: Sequence[Path], camera: str) -> AsyncGenerator[bytes]:
        """Lines of JSON without their ends, until all stages have ended; empty ones while nothing comes."""
        lines: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_WAITING)
        tasks = [asyncio.ensure_future(_read(path, camera, lines)) for path in paths]
        self.viewers += 1
        try:
            left = len(tasks)
            while left:
                try:
                    line = await asyncio.wait_for(lines.get(), _HEARTBEAT_S)
                except TimeoutError:
                    line = b""
                if line is None:
                    left -= 1
                else:
                    yield line
        finally:
            self.viewers -= 1
            for task in tasks:
                task.cancel()

    async def for_ever(self, find: Callable[[], Awaitable[Sequence[Path]]], camera: str) -> AsyncIterator[bytes]:
        """As `lines`, but when the stages have ended, those that `find` finds then; nothing while too many look."""
        while True:
            paths = await find()
            if paths and self.viewers < MOST_VIEWERS:
                async with aclosing(self.lines(paths, camera)) as lines:
                    async for line in lines:
                        yield line
            await asyncio.sleep(_AGAIN_S)


async def _read(path: Path, camera: str, lines: asyncio.Queue[bytes | None]) -> None:
    """All lines of one stage, then None."""
    with suppress(OSError, ValueError):  # ValueError: a line that is too long
        with short_address(path) as address:
            reader, writer = await asyncio.open_unix_connection(address, limit=_MOST_LINE)
        try:
            writer.write(camera.encode() + b"\n")
            stage = b'{"stage":%b,' % json.dumps(path.parent.name).encode()
            while (line := await reader.readline()).startswith(b"{"):
                await lines.put(stage + line[1:].rstrip(b"\n"))
        finally:
            writer.close()
    await lines.put(None)
