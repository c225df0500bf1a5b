"""Recording without a break, of the packets of a real reader of a real camera."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import dropwhile, groupby, pairwise
from pathlib import Path

import av
import pytest
import structlog
from camgraph_test_stages.waiting import until
from pydantic import ValidationError

from camgraph.pipeline.stage import Settings
from camgraph.pipeline.testing import HandContext
from camgraph.stages.sinks.footage import recording
from camgraph.stages.sinks.footage.feed import PacketFeed
from camgraph.stages.sinks.footage.recording import Recording, RecordingLimits
from camgraph.stages.sinks.sink_footage import SinkFootage, SinkFootageSettings
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.video.packets import Packet, wanted_mark
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

NO_LIMIT = RecordingLimits(part_s=1.0, keep_s=1e9, keep_bytes=1e12)


@pytest.fixture(scope="module")
def simulator() -> Iterator[RtspSimulator]:
    clip = ClipSettings(codec="h264", width=320, fps=20, seconds=2, gop=10, b_frames=2)
    with RtspSimulator([CameraSettings(name="cam", clip=clip)]) as made:
        yield made


@dataclass
class Recorded:
    recording: Recording
    packets: list[Packet] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    def add(self, name: str, packet: Packet) -> None:
        self.packets.append(packet)
        self.recording.add(name, packet)

    def files(self, pattern: str = "*.mp4") -> list[Path]:
        return sorted(self.recording.folder.glob(f"cam/recorded/*/{pattern}"))


@contextmanager
def recorded(folder: Path, url: Path | str, place: Path) -> Iterator[Recorded]:
    """A camera is read and recorded until the end of the block."""
    state = folder / "state" / "capture"
    state.mkdir(parents=True)
    wanted_mark(state.parent).touch()
    troubles: list[str] = []
    made = Recorded(Recording(place, NO_LIMIT, lambda _, why: troubles.append(why)), troubles=troubles)
    feed = PacketFeed(state.parent, structlog.get_logger(), made.add, made.recording.over, lambda *_: None)
    with reading(folder, url), running(lambda: feed.turn(0.1)):
        yield made
    feed.close()
    made.recording.close()


@contextmanager
def reading(folder: Path, url: Path | str) -> Iterator[None]:
    state, stop = folder / "state" / "capture", threading.Event()
    capture = Capture(Settings(), "cam", Camera.model_validate({"url": str(url)}), HandContext(folder, state))
    frames = capture.frames(stop, None)
    with running(lambda: next(frames, None)):
        try:
            yield
        finally:
            stop.set()


@contextmanager
def running(turn: Callable[[], object]) -> Iterator[None]:
    """Call it again and again, in a thread."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            turn()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def packets_of(path: Path) -> list[tuple[bool, int]]:
    with av.open(str(path)) as container:
        return [(packet.is_keyframe, packet.dts or 0) for packet in container.demux(video=0) if packet.size]


def test_no_packet_is_missing_between_the_files(simulator: RtspSimulator, tmp_path: Path) -> None:
    with recorded(tmp_path, simulator.camera("cam").url, tmp_path / "kept") as camera:
        until(lambda: len(camera.files()) >= 2)
        (growing,) = until(lambda: camera.files("*.part"))
        size = growing.stat().st_size
        until(lambda: not growing.exists() or growing.stat().st_size > size)
    files = [packets_of(path) for path in camera.files()]
    # On a busy machine the camera is lost now and then, and its next stream may begin between two keyframes.
    streams = [list(packets) for _, packets in groupby(camera.packets, key=lambda packet: packet.stream)]
    playable = [list(dropwhile(lambda packet: not packet.is_key, packets)) for packets in streams]
    assert sum(map(len, files)) == sum(map(len, playable))
    assert all(file[0][0] for file in files), "each begins at a keyframe"
    assert max(map(len, files)) <= 30, "a second each, up to the next keyframe"
    assert sum(len(file) < 20 for file in files) <= len(streams), "only a stream's end is shorter"
    assert all(before < after for file in files for (_, before), (_, after) in pairwise(file))
    assert camera.files("*.part") == []
    assert camera.troubles == []


def has_grown(part: Path) -> bool:
    """Whether a file under way has more than 10 kB, or is complete: where packets come late, another begins."""
    with suppress(FileNotFoundError):
        return part.stat().st_size > 10_000
    return True


def test_the_sink_records_without_any_incident(simulator: RtspSimulator, tmp_path: Path) -> None:
    for stage in ("capture", "footage"):
        (tmp_path / "state" / stage).mkdir(parents=True)
    settings = SinkFootageSettings.model_validate({"record": "always"})
    sink = SinkFootage(settings, HandContext(tmp_path, tmp_path / "state" / "footage"))
    sink.open()
    with reading(tmp_path, simulator.camera("cam").url):
        part = until(lambda: next((tmp_path / "footage").glob("cam/recorded/*/*.part"), None))
        until(lambda: has_grown(part))
        sink.close()
    assert packets_of(part.with_suffix(""))


def test_a_full_disk_pauses_it(
    simulator: RtspSimulator, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_RETRY_S", 0.3)
    with recorded(tmp_path, simulator.camera("cam").url, small_disk) as camera:
        until(lambda: camera.troubles)
        assert "No space left" in camera.troubles[0]
        seen = len(camera.packets)
        until(lambda: len(camera.packets) > seen + 20)
        for path in camera.files("*"):
            path.unlink()
        until(lambda: camera.troubles[-1] == "")


def test_files_are_not_recorded(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    with recorded(tmp_path, make_clip("a.mp4", frames=30), tmp_path / "kept") as camera:
        until(lambda: len(camera.packets) == 30)
    assert not (tmp_path / "kept").exists()


def test_without_further_keyframes_no_file_is_endless(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    with recorded(tmp_path, make_clip("a.mp4", frames=60, options={"g": "1000"}), tmp_path / "none") as camera:
        until(lambda: len(camera.packets) == 60)
    packets = [
        replace(packet, stream=replace(packet.stream, is_live=True), is_key=not number)
        for number, packet in enumerate(camera.packets)
    ]
    assert packets[0].is_key
    size = sum(len(packet.data) for packet in packets)
    troubles: list[str] = []
    limits = RecordingLimits(part_s=0.5, keep_s=1e9, keep_bytes=size)
    recording = Recording(tmp_path / "kept", limits, lambda camera, why: troubles.append(why))
    for packet in packets:
        recording.add("cam", packet)
    [file] = (tmp_path / "kept").rglob("*.mp4")
    assert 10 < len(packets_of(file)) < 60
    assert troubles == ["it is not recorded until it sends a keyframe: shorten its keyframe interval"]


def kept(folder: Path, day: int, *, size: int = 1000, name: str = "10-00-00.mp4", camera: str = "cam") -> Path:
    path = folder / camera / "recorded" / f"2026-11-{day:02d}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (day * 86_400.0,) * 2)
    return path


def left(folder: Path) -> list[int]:
    return sorted(int(path.parent.name[-2:]) for path in folder.glob("*/recorded/*/*"))


@pytest.mark.parametrize(("days", "most", "stay"), [(3.0, 1e9, [7, 8]), (100.0, 2500, [7, 8]), (100.0, 1e9, [1, 7, 8])])
def test_the_oldest_go_first(tmp_path: Path, days: float, most: float, stay: list[int]) -> None:
    for day, camera in ((1, "a"), (7, "b"), (8, "a")):
        kept(tmp_path, day, camera=camera)
    limits = RecordingLimits(part_s=1.0, keep_s=days * 86_400, keep_bytes=most)
    assert Recording(tmp_path, limits, print).sweep(9 * 86_400.0) == 3 - len(stay)
    assert left(tmp_path) == stay
    assert (tmp_path / "a" / "recorded" / "2026-11-01").exists() == (1 in stay)


def test_what_a_killed_process_has_left_gets_its_name(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    plays = kept(tmp_path, 2, name="10-00-00.mp4.part")
    plays.write_bytes(make_clip("a.mp4", frames=10).read_bytes())
    broken = kept(tmp_path, 2, name="10-01-00.mp4.part")
    now_s = plays.stat().st_mtime
    of_others = Recording(tmp_path, NO_LIMIT, print)
    of_others.sweep(now_s + 10)
    assert plays.exists(), "somebody may still write it"
    of_others.sweep(now_s + 1000)
    assert [path.name for path in plays.parent.iterdir()] == ["10-00-00.mp4"]
    assert not broken.exists()


def test_settings(tmp_path: Path) -> None:
    settings = SinkFootageSettings.model_validate({"record": "always", "record_gb": 7})
    assert any("up to 7 GB of disk" in remark for remark in SinkFootage.remarks(settings, tmp_path, {"cam": None}))
    with pytest.raises(ValidationError, match="no picture leave"):
        SinkFootageSettings.model_validate({"record": "always", "look": "skeleton_only"})
