"""A file may pass `camgraph check` and then need gigabytes: its camera ends, and the others go on."""

from __future__ import annotations

import ctypes
import gc
import struct
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import av._core
import numpy as np
import pytest
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import BadItem, CamgraphError, EnvironmentProblem
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.testing import HandContext
from camgraph.stages.video import file_memory
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.video.examiner import Examiner
from camgraph.stages.video.ffmpeg_memory import own_bytes
from camgraph.stages.video.file_memory import FileMemory

MB = 1 << 20
WITHIN_S = 60.0
FRAMES = 300
REFUSES_CLAIMS = av.library_versions["libavformat"][0] >= 63
"""FFmpeg 9 takes a fragment that lists more frames than it has bytes for damaged."""


def boxes(data: bytes) -> Iterator[tuple[bytes, int]]:
    """(kind, where it begins) of each box of an MP4, in order."""
    at = 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        yield kind, at
        at += size


def box(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(data), kind) + data


def claiming(path: Path, frames: int) -> Path:
    """A video in fragments whose last one claims so many frames, in 100 bytes.

    An index (sidx) says where all fragments end, so that FFmpeg looks at none of them before its turn.
    """
    flags = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}
    with av.open(str(path), "w", format="mp4", options=flags) as container:
        stream = container.add_stream("libx264", rate=10, options={"g": "10"})
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for index in range(FRAMES):
            frame = av.VideoFrame.from_ndarray(np.full((64, 96, 3), index % 256, np.uint8), format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    data = path.read_bytes()
    first = next(at for kind, at in boxes(data) if kind == b"moof")
    end = next((at for kind, at in boxes(data) if kind == b"mfra"), len(data))
    # Of one track, with a length and a size that hold for all of its frames.
    track = box(b"tfhd", struct.pack(">IIII", 0x020018, 1, 1024, 16))
    track += box(b"tfdt", struct.pack(">BBHQ", 1, 0, 0, 1024 * FRAMES)) + box(
        b"trun", struct.pack(">III", 1, frames, 200)
    )
    fragment = box(b"moof", box(b"mfhd", struct.pack(">II", 0, 99)) + box(b"traf", track))
    rest = data[first:end] + fragment + box(b"mdat", bytes(1000))
    reference = struct.pack(">III", len(rest), 10240 * FRAMES, 0x90000000)
    path.write_bytes(data[:first] + box(b"sidx", struct.pack(">IIIIIHH", 0, 1, 10240, 0, 0, 0, 1) + reference) + rest)
    return path


def read(path: Path, *, alone: bool, memory_mb: int) -> tuple[int, CamgraphError | None, int]:
    """The frames, how it ended, and by how much this process was larger when it did."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # else FFmpeg takes what earlier tests have left, and nothing grows
    context = HandContext(path.parent, path.parent, outputs_leave=alone)
    capture = Capture(Settings(), "cam", Camera.model_validate({"url": str(path), "memory_mb": memory_mb}), context)
    count, before, error = 0, own_bytes(), None
    try:
        for _ in capture.frames(threading.Event(), None):
            count += 1
    except CamgraphError as raised:
        error = raised
    return count, error, own_bytes() - before


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.processes
def test_a_claim_of_gigabytes_ends_the_file_and_takes_none(tmp_path: Path, alone: bool) -> None:
    path = claiming(tmp_path / "a.mp4", 60_000_000)
    examiner = Examiner()
    found = examiner.examine(path, playlist=False, memory_mb=1024)
    examiner.close()
    assert (found.refused, found.unreadable, found.frame_size) == ("", "", (96, 64)), "nothing of it shows beforehand"
    count, error, grown = read(path, alone=alone, memory_mb=1024)
    assert FRAMES - 10 < count <= FRAMES
    assert isinstance(error, BadItem)
    message = "Invalid data" if REFUSES_CLAIMS else "a.mp4: FFmpeg wants more than 1024 MB for it (memory_mb)"
    assert message in str(error)
    assert grown < 200 * MB


@pytest.mark.skipif(REFUSES_CLAIMS, reason="this FFmpeg refuses the file, and no other makes it grow")
@pytest.mark.slow
def test_growth_in_smaller_blocks_is_seen_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FFmpeg has two lists of them; none is larger than the limit, and both are."""
    monkeypatch.setattr(file_memory, "TICK_S", 60.0)  # the thread beside it comes too late
    count, error, _ = read(claiming(tmp_path / "a.mp4", 8_000_000), alone=True, memory_mb=200)
    assert FRAMES - 10 < count <= FRAMES
    assert "a.mp4: FFmpeg wants more than 200 MB for it (memory_mb)" in str(error)


def test_a_file_within_its_limit_is_read_to_its_end(tmp_path: Path) -> None:
    count, error, _ = read(claiming(tmp_path / "a.mp4", 2), alone=True, memory_mb=64)
    assert FRAMES - 10 < count <= FRAMES
    assert "too_much_memory" not in str(error), "its last fragment is not as long as it claims, and that is all"


def busy_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end, "it never came to be so"


def test_a_call_that_takes_too_much_raises_at_its_end() -> None:
    with FileMemory("a.mp4", 64, alone=False) as memory:

        def call() -> None:
            with memory.in_ffmpeg:
                busy_until(lambda: memory._guard._call_begun_s is not None)
                block = bytearray(200 * MB)
                block[::4096] = b"x" * len(block[::4096])
                busy_until(lambda: memory.is_too_large)

        with pytest.raises(BadItem, match=r"a\.mp4: FFmpeg wants more than 64 MB"):
            call()


def test_what_others_take_while_a_disk_is_waited_for_is_theirs() -> None:
    with FileMemory("a.mp4", 64, alone=False) as memory:
        with memory.in_ffmpeg:
            looks = 0

            def watched(begun_s: float | None, now_s: float) -> bool:
                nonlocal looks
                looks += 1
                return is_over(begun_s, now_s)

            is_over, memory._guard.is_over = memory._guard.is_over, watched  # type: ignore[method-assign]
            block: list[bytearray] = []
            others = threading.Thread(target=lambda: block.append(bytearray(b"x") * (200 * MB)))
            others.start()
            others.join()
            seen = looks
            until(lambda: looks >= seen + 5, WITHIN_S)  # a second, in which this thread does nothing
        assert not memory.is_too_large


def block_of(size: int) -> bool:
    """Whether FFmpeg gives a block of so many bytes."""
    ffmpeg = ctypes.CDLL(av._core.__file__)
    ffmpeg.av_malloc.restype = ctypes.c_void_p
    given = ffmpeg.av_malloc(ctypes.c_size_t(size))
    ffmpeg.av_free(ctypes.c_void_p(given))
    return given is not None


def test_largest_limit_of_open_files_bounds_blocks() -> None:
    with FileMemory("a.mp4", 64, alone=True):
        assert not block_of(65 * MB)
        with FileMemory("b.mp4", 128, alone=True):
            assert block_of(65 * MB)
            assert not block_of(129 * MB)
        assert not block_of(65 * MB)
    assert block_of(129 * MB)


def test_without_a_thread_the_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(EnvironmentProblem, match="no thread can be started"), FileMemory("a", 64, alone=True):
            pass
    assert block_of(129 * MB)
