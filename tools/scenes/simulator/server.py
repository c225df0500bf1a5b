"""The process that serves all cameras of a simulator; its standard input is the socket to its caller.

A process of its own, so that neither the caller's threads nor the cameras wait for each other.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Mapping
from itertools import islice

from pydantic import ValidationError

from camgraph.pipeline.errors import CamgraphError
from camgraph.tools.scenes.simulator.camera import Camera
from camgraph.tools.scenes.simulator.clip import Clip, load_clip
from camgraph.tools.scenes.simulator.control import Order, Plan, Reply
from camgraph.tools.scenes.simulator.faults import KINDS, Fault, FaultName, ScheduledFault
from camgraph.tools.scenes.simulator.settings import ClipSettings

LONGEST_LINE = 1 << 26


class Server:
    """The cameras of one plan, and the clips that they share."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._clips: dict[ClipSettings, Clip] = {}
        self._cameras: dict[str, Camera] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> Reply:
        """Make the clips ready, those of scheduled faults too, and then open all ports."""
        cameras = {one.name: Camera(one, await self._clip(one.clip)) for one in self._plan.cameras}
        for scheduled in self._plan.schedule:
            for camera in self._concerned(scheduled, cameras):
                await self._clip_after(camera, scheduled.fault)
        for name, camera in cameras.items():
            camera.open()
            self._cameras[name] = camera
        self._tasks = {asyncio.create_task(self._strike(scheduled)) for scheduled in self._plan.schedule}
        return Reply(ports=tuple(camera.port for camera in cameras.values()))

    async def obey(self, order: Order) -> Reply:
        """Carry out orders, and report the results."""
        camera = self._cameras[order.camera]
        if order.do == "fault" and order.fault is not None:
            await self._apply(camera, order.fault)
        if order.do == "heal":
            self._heal(camera, order.names or tuple(KINDS))
        if order.do == "sent":
            newest = islice(reversed(camera.sent), order.newest or None)
            return Reply(sent=tuple(newest)[::-1])
        return Reply(counts=camera.counted())

    def close(self) -> None:
        """End all cameras."""
        for task in self._tasks:
            task.cancel()
        for camera in self._cameras.values():
            camera.close()

    async def _apply(self, camera: Camera, fault: Fault) -> None:
        camera.apply(fault, await self._clip_after(camera, fault))

    def _heal(self, camera: Camera, names: tuple[FaultName, ...]) -> None:
        for name in names:
            camera.heal(name)

    async def _strike(self, scheduled: ScheduledFault) -> None:
        """One line of the schedule, from its beginning to its end."""
        await asyncio.sleep(scheduled.at_s)
        cameras = self._concerned(scheduled, self._cameras)
        for camera in cameras:
            await self._apply(camera, scheduled.fault)
        self._say("begins", scheduled)
        if scheduled.for_s is None:
            return
        await asyncio.sleep(scheduled.for_s)
        for camera in cameras:
            self._heal(camera, (scheduled.fault.name,))
        self._say("ends", scheduled)

    def _say(self, what: str, scheduled: ScheduledFault) -> None:
        if self._plan.say_faults:
            fault = ":".join(part for part in (scheduled.fault.name, scheduled.fault.value) if part)
            print(f"{fault} {what} ({scheduled.camera or 'all cameras'})", file=sys.stderr, flush=True)  # noqa: T201 - the command's own words

    def _concerned(self, scheduled: ScheduledFault, cameras: Mapping[str, Camera]) -> list[Camera]:
        return list(cameras.values()) if scheduled.camera is None else [cameras[scheduled.camera]]

    async def _clip_after(self, camera: Camera, fault: Fault) -> Clip | None:
        """The camera's clip after the fault changed its stream; None if the fault does not."""
        now = {"codec": camera.clip.codec, "width": camera.clip.width, "height": camera.clip.height}
        if fault.name == "resize":
            now["width"], now["height"] = map(int, fault.value.split("x"))
        elif fault.name == "codec":
            now["codec"] = "h265" if fault.value == "h265" else "h264"
        else:
            return None
        return await self._clip(camera.settings.clip.model_copy(update=now))

    async def _clip(self, settings: ClipSettings) -> Clip:
        """A clip, made once for all who want it, beside the loop: cameras go on meanwhile."""
        if settings not in self._clips:
            self._clips[settings] = await asyncio.to_thread(load_clip, settings)
        return self._clips[settings]


async def serve(control: socket.socket) -> None:
    """Serve one plan until the other end of ``control`` is closed."""
    reader, writer = await asyncio.open_connection(sock=control, limit=LONGEST_LINE)
    server = Server(Plan.model_validate_json(await reader.readline()))
    try:
        opened = await _answered(writer, server.open())
        while opened and (line := await reader.readline()):
            await _answered(writer, server.obey(Order.model_validate_json(line)))
    except (ConnectionError, ValidationError):
        pass  # The simulator's process died, in the middle of a line perhaps.
    finally:
        server.close()
        writer.close()


async def _answered(writer: asyncio.StreamWriter, work: Awaitable[Reply]) -> bool:
    """Send the result, and whether that was no error."""
    try:
        reply = await work
    except CamgraphError as error:
        reply = Reply(error=str(error), exit_status=error.exit_status)
    writer.write(reply.model_dump_json().encode() + b"\n")
    await writer.drain()
    return not reply.error


def main() -> None:
    """Serve the simulator at the other end of the standard input; Ctrl-C is for the simulator to see."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Each camera takes a descriptor, each client up to three.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(socket.socket(fileno=sys.stdin.fileno())))


if __name__ == "__main__":
    main()
