"""The cost of pictures and clips of incidents.

    python -m camgraph.tools.lab.benchmarks.footage --report docs/footage.md

Encodes a video of moving noise, takes its packets as `sink_footage` gets them, and measures the processor time of one
picture (the last of a group of pictures, which costs most), of one clip of ten seconds, and of handing on the packets.
A camera of the simulator shows how old a frame is when its picture and clip are announced.
"""

from __future__ import annotations

import io
import json
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any, Literal, get_args

import av
import numpy as np
import structlog
from av.video.stream import VideoStream

from camgraph.pipeline.messages import Event
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.system.side_link import follow
from camgraph.pipeline.testing import HandContext
from camgraph.stages import events
from camgraph.stages.messages import Frame
from camgraph.stages.sinks.footage.best import sharpness
from camgraph.stages.sinks.footage.clip import Clip
from camgraph.stages.sinks.footage.incident_record import sha256_of
from camgraph.stages.sinks.footage.still import decode_last, drawn, jpeg
from camgraph.stages.sinks.sink_footage import SinkFootage, SinkFootageSettings
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.video.packets import Packet, VideoStreamInfo
from camgraph.stages.video.tap import PacketTap
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

_FPS, _SECONDS = 25, 10
_SIZES = ((640, 360), (1280, 720), (1920, 1080))
_REPEATS = 5
_RING_S = 70
"""How much the ring keeps with `before_s: 5`."""
_EVERY, _INCIDENTS = 2, 10
"""Seconds from one incident to the next, and how many there are."""
Listener = Literal["nobody", "a reader", "one that never reads"]


def packets_of(width: int, height: int) -> list[Packet]:
    """Ten seconds, as the tap hands them on."""
    return _read(_encoded(width, height, _FPS * _SECONDS), sample=_encoded(width, height, 1))


def _encoded(width: int, height: int, count: int) -> bytes:
    """H.264 with a keyframe each second."""
    file, noise = io.BytesIO(), np.random.default_rng(1)
    still = noise.integers(0, 255, (height // 8, width // 8, 3)).astype(np.uint8).repeat(8, 0).repeat(8, 1)
    with av.open(file, "w", format="nut") as container:
        stream = container.add_stream("libx264", rate=_FPS, options={"g": "25", "bf": "0", "preset": "veryfast"})
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = still.shape[1], still.shape[0], "yuv420p"
        for number in range(count):
            moved = np.roll(still, 3 * number, axis=1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(moved, format="rgb24")))
        container.mux(stream.encode())
    return file.getvalue()


def _read(data: bytes, *, sample: bytes) -> list[Packet]:
    with av.open(io.BytesIO(data), "r", format="nut") as container:
        video = container.streams.video[0]
        size = video.codec_context.width, video.codec_context.height
        assert video.time_base is not None
        info = VideoStreamInfo("h264", sample, *size, Fraction(video.time_base), 0, is_live=True)
        return [
            Packet(info, packet.pts, packet.dts or packet.pts, packet.duration or 0, packet.is_keyframe, bytes(packet))
            for packet in container.demux(video)
            if packet.pts is not None
        ]


def cpu_ms(work: Callable[[], object]) -> float:
    """The processor time of one call, in all threads of this process: the median of some."""
    found = []
    for _ in range(_REPEATS):
        begun = time.process_time()
        work()
        found.append(1000 * (time.process_time() - begun))
    return median(found)


def row(width: int, height: int, folder: Path) -> str:
    """One line of the table."""
    packets = packets_of(width, height)
    person = {"track_id": 1, "bbox": [width * 0.4, height * 0.2, width * 0.6, height * 0.9], "score": 0.9}
    person["keypoints"] = [width / 2, height / 2, 0.9] * 17
    data = {"people": [person], "frame": {"width": width, "height": height}, "camera": "c", "action": "fall"}

    def picture() -> None:
        decoded = decode_last(packets[:_FPS])
        assert decoded is not None
        sharpness(decoded, data)
        jpeg(drawn(decoded, data, "annotated", UTC))

    def clip() -> None:
        made = Clip(folder / "clip.mp4", packets[0].stream)
        for packet in packets:
            made.add(packet)
        made.close()
        sha256_of(folder / "clip.mp4")

    rate = sum(len(packet.data) for packet in packets) / _SECONDS
    return (
        f"| {width}x{height} | {8 * rate / 1e6:.1f} Mbit/s | {cpu_ms(picture):.0f} ms | {cpu_ms(clip):.0f} ms | "
        f"{rate * _RING_S / 1e6:.0f} MB | {rate * _SECONDS / 1e6:.1f} MB |"
    )


def offering(listener: Listener, width: int, height: int) -> str:
    """The line about handing the packets of a live camera to somebody, in the thread that reads the camera."""
    with tempfile.TemporaryDirectory(prefix="cgtap") as folder, ExitStack() as stack:
        tap = PacketTap(Path(folder) / "c.packets", structlog.get_logger(), patient=False)
        stack.callback(tap.close)
        container = stack.enter_context(
            av.open(io.BytesIO(_encoded(width, height, _FPS * _SECONDS)), "r", format="nut")
        )
        packets = [packet for packet in container.demux(video=0) if packet.size]
        tap.offer(packets[0], 0)  # it listens from now on
        if listener != "nobody":
            link = stack.enter_context(closing(follow(Path(folder) / "c.packets")))
            link.connection.setblocking(True)
            if listener == "a reader":
                threading.Thread(target=_drain, args=(link.connection,), daemon=True).start()
        begun, worst = time.thread_time(), 0.0
        for packet in packets * _REPEATS:
            before = time.perf_counter()
            tap.offer(packet, 0)
            worst = max(worst, time.perf_counter() - before)
        each_us = 1e6 * (time.thread_time() - begun) / (_REPEATS * len(packets))
        return (
            f"| {listener} | {each_us:.0f} us | {1000 * worst:.1f} ms | {tap.left_out} of {_REPEATS * len(packets)} |"
        )


def _drain(client: socket.socket) -> None:
    with suppress(OSError):
        while client.recv(1 << 20):
            pass


def ages() -> str:
    """The line about how old frames are when their pictures and clips are announced."""
    clip = ClipSettings(codec="h264", width=1280, fps=_FPS, seconds=4, gop=_FPS)
    with (
        tempfile.TemporaryDirectory(prefix="cgfootage") as text,
        RtspSimulator([CameraSettings(name="cam", clip=clip)]) as simulator,
    ):
        folder, stop = Path(text), threading.Event()
        reading, keeping = (HandContext(folder, folder / "state" / name) for name in ("capture", "footage"))
        for context in (reading, keeping):
            context.state_folder.mkdir(parents=True)
        sink = SinkFootage(SinkFootageSettings.model_validate({"before_s": 1, "after_s": 1, "best": False}), keeping)
        sink.open()
        capture = Capture(Settings(), "cam", Camera.model_validate({"url": simulator.camera("cam").url}), reading)
        begun: dict[str, int] = {}
        found: dict[str, list[float]] = {"snapshot": [], "clip": []}
        for number, frame in enumerate(capture.frames(stop, None)):
            if number and number % (_EVERY * _FPS) == 0 and len(begun) < _INCIDENTS:
                begun[f"{number:032x}"] = frame.stamp.time_ns
                sink.process([_incident(frame, f"{number:032x}")])
            _note_announced(keeping, begun, found)
            if len(found["clip"]) == _INCIDENTS:
                stop.set()
        sink.close()
    picture, later = found["snapshot"], [age - 1 for age in found["clip"]]
    return (
        f"{_INCIDENTS} incidents of a live camera (1280 wide, {_FPS} frames a second): `ready` came {_short(picture)} "
        f"after the frame for the picture, and {_short(later)} after `after_s` for the clip (median, worst)."
    )


def _short(seconds: Sequence[float]) -> str:
    return f"{1000 * median(seconds):.0f} ms, {1000 * max(seconds):.0f} ms"


def _note_announced(context: HandContext, begun: Mapping[str, int], found: Mapping[str, list[float]]) -> None:
    announced, now_ns = list(context.emitted), time.monotonic_ns()
    context.emitted.clear()
    for event in announced:
        data = json.loads(event.body)["data"]
        found[data["kind"]].append((now_ns - begun[data["incident"]]) / 1e9)


def _incident(frame: Frame, incident: str) -> Event:
    stamp = frame.stamp
    person = {"track_id": 1, "bbox": [100, 100, 300, 600], "score": 0.9, "keypoints": [200.0, 200.0, 0.9] * 17}
    data: dict[str, Any] = {
        "incident": incident,
        "phase": "single",
        "rule": {"id": "fall", "hash": "0"},
        "action": "fall",
        "camera": stamp.camera,
        "people": [person],
        "keypoints_format": "coco-17",
        "zones": [],
        "start_time": events.utc(stamp.wall_ns),
        "duration_s": 0.0,
        "frame": {"width": frame.width, "height": frame.height}
        | {name: getattr(stamp, name) for name in ("epoch", "seq", "pts", "time_base")},
    }
    whole = events.IncidentData.model_validate(data)
    return events.incident_event(stamp, "bench", ("bench", incident), whole, time=events.utc(stamp.wall_ns), updates=0)


@figure_command("benchmarks.footage")
def main(figure: Figure) -> None:
    """Measure pictures and clips at three sizes, what capture pays for them, and when they come."""
    with tempfile.TemporaryDirectory(prefix="cgfootage") as folder:
        rows = [row(*size, Path(folder)) for size in _SIZES]
    head = "| camera | rate | picture | clip of 10 s | packets of 70 s in memory | clip on the disk |"
    parts = [figure.head(), "", head, "|---|---|---|---|---|---|", *rows, ""]
    parts += ["| who listens to a live camera (1920x1080) | a packet costs `capture` | the slowest | left out |"]
    parts += ["|---|---|---|---|", *(offering(listener, 1920, 1080) for listener in get_args(Listener)), "", ages(), ""]
    figure.publish("\n".join(parts))


if __name__ == "__main__":
    main()
