"""What pictures and clips of incidents cost: `python -m tools.benchmarks.footage --report docs/footage.md`.

Encodes a video of moving noise, takes its packets as `sink_footage` gets them, and measures the processor time of one
picture (the last of a group of pictures, which costs most) and of one clip of ten seconds.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import median

import av
import click
import numpy as np
from av.video.stream import VideoStream

from stages.footage.best import sharpness
from stages.footage.clip import Clip
from stages.footage.incident_record import sha256_of
from stages.footage.packets import Packet, VideoStreamInfo
from stages.footage.still import decode_last, drawn, jpeg
from tools.measuring.report_page import machine_line, publish, report_option, written_by

TOOL = "benchmarks.footage"
_FPS, _SECONDS = 25, 10
_SIZES = ((640, 360), (1280, 720), (1920, 1080))
_REPEATS = 5
_RING_S = 70
"""What the ring keeps with `before_s: 5`."""


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
        jpeg(drawn(decoded, data, "annotated"))

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


@click.command()
@report_option(TOOL)
def main(target: Path | None) -> None:
    """Measure a picture and a clip at three sizes."""
    with tempfile.TemporaryDirectory(prefix="cgfootage") as folder:
        rows = [row(*size, Path(folder)) for size in _SIZES]
    head = "| camera | rate | picture | clip of 10 s | packets of 70 s in memory | clip on the disk |"
    text = "\n".join([f"{written_by(TOOL, {})} {machine_line()}.", "", head, "|---|---|---|---|---|---|", *rows, ""])
    publish(text, target, TOOL)


if __name__ == "__main__":
    main()
