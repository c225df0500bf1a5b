"""The process that looks at files: what it says, its limits, and its ends."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from camgraph_test_stages.waiting import until

from camgraph.stages.video import examiner as module
from camgraph.stages.video.examination import Answer
from camgraph.stages.video.examiner import PASSING_S, Examiner, Remembered, examine

MakeClip = Callable[..., Path]
MEMORY_MB = 1024


@pytest.fixture
def examiner() -> Iterator[Examiner]:
    made = Examiner()
    yield made
    made.close()


def child_of(examiner: Examiner) -> int:
    assert examiner._process is not None
    return examiner._process.pid


def test_a_good_file_is_told_with_the_size_of_its_frames(examiner: Examiner, make_clip: MakeClip) -> None:
    found = examiner.examine(make_clip("a.mp4"), playlist=False, memory_mb=MEMORY_MB)
    assert (found.refused, found.unreadable, found.frame_bytes) == ("", "", 96 * 64 * 3 // 2)


def test_many_files_are_looked_at_by_one_process(examiner: Examiner, make_clip: MakeClip) -> None:
    clips = [make_clip(f"{number}.mp4", frames=2) for number in range(5)]
    seen = set()
    for clip in clips:
        assert not examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB).refused
        seen.add(child_of(examiner))
    assert len(seen) == 1


def test_a_4k_hevc_file_fits_into_the_usual_limit(examiner: Examiner, make_clip: MakeClip) -> None:
    clip = make_clip("a.mp4", frames=3, size=(3840, 2160), codec="libx265", options={"preset": "ultrafast"})
    found = examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB)
    assert (found.refused, found.frame_bytes) == ("", 3840 * 2160 * 3 // 2)


def test_too_large_a_picture_is_told_with_its_size(examiner: Examiner, tmp_path: Path) -> None:
    """FFmpeg knows no size of one that it does not take at all."""
    head = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes((1 + 3 * 20_000) * 100), 9)
    parts = [(b"IHDR", head), (b"IDAT", rows), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    ]
    path = tmp_path / "huge.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    refused = examiner.examine(path, playlist=False, memory_mb=MEMORY_MB).refused
    assert refused.startswith(f"{path}: its picture is 20000x20000, expected at most 134 megapixels")


def test_file_over_memory_mb_is_refused_alone(examiner: Examiner, make_clip: MakeClip) -> None:
    large = make_clip("a.mp4", frames=3, size=(3840, 2160), options={"preset": "ultrafast"})
    refused = examiner.examine(large, playlist=False, memory_mb=16).refused
    assert "a.mp4: " in refused
    assert "too much memory" in refused
    assert "16 MB" in refused
    assert not examiner.examine(large, playlist=False, memory_mb=MEMORY_MB).refused


def test_one_that_does_not_answer_is_ended(make_clip: MakeClip) -> None:
    clip = make_clip("a.mp4", frames=2)
    examiner = Examiner(answer_s=60)
    assert not examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB).refused
    stopped = child_of(examiner)
    os.kill(stopped, signal.SIGSTOP)
    examiner._answer_s = 0.2
    assert "had not opened it after 0.2 s" in examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB).refused
    assert not Path(f"/proc/{stopped}").exists()
    examiner._answer_s = 60
    assert not examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB).refused
    examiner.close()


def test_one_that_has_died_is_replaced(examiner: Examiner, make_clip: MakeClip) -> None:
    clip = make_clip("a.mp4", frames=2)
    examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB)
    first = child_of(examiner)
    os.kill(first, signal.SIGKILL)
    until(lambda: "(zombie)" in Path(f"/proc/{first}/status").read_text())
    assert not examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB).refused
    assert child_of(examiner) != first


def test_one_that_cannot_die_is_left_to_itself(
    examiner: Examiner, make_clip: MakeClip, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while it waits for a disk that is gone."""
    clip = make_clip("a.mp4", frames=2)
    examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB)
    first = examiner._process
    assert first is not None
    os.kill(first.pid, signal.SIGSTOP)
    examiner._answer_s = 0.2
    with monkeypatch.context() as patch:
        for name, made in (("kill", lambda: None), ("poll", lambda: None), ("wait", not_dead)):
            patch.setattr(first, name, made)
        assert "had not opened it" in examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB).refused
    first.kill()
    first.wait(60)
    examiner._answer_s = 60
    assert not examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB).refused
    examiner.close()
    assert examiner._dying == []


def not_dead(within_s: float) -> int:
    raise subprocess.TimeoutExpired("", within_s)


@pytest.mark.parametrize(
    "message",
    [
        *("5", "null", "[]", "{", "\n", '{"frame_size": 5}', '{"shapes": 5}', '{"refused": 5}', '{"length_s": NaN}'),
        *('{"frame_bytes": -1}', '{"frame_size": [0, 1]}', '{"shapes": [[1, 1, 3], [1, 1, 3]]}', "[" * 100_000),
        *('{"shapes": [[1000000, 1000000, 3]]}', '{"shapes": [[3]]}', '{"shapes": [[-1, -1, 3]]}', "x" * (2 << 20)),
    ],
)
def test_nonsense_answer_is_blamed_on_the_file(
    examiner: Examiner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    (tmp_path / "said").write_text(f"{message}\n")

    def executed() -> subprocess.Popen[bytes]:
        command = ["/bin/sh", "-c", f"read question; cat {tmp_path / 'said'}"]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    monkeypatch.setattr(module, "_executed", executed)
    assert examiner.frames(tmp_path / "a.mp4", 1, MEMORY_MB) == []
    assert "FFmpeg breaks over it" in examiner.examine(tmp_path / "a.mp4", playlist=False, memory_mb=MEMORY_MB).refused


def test_it_works_among_many_open_descriptors(examiner: Examiner, make_clip: MakeClip, many_descriptors: None) -> None:
    clip = make_clip("a.mp4", frames=2)
    assert examiner.examine(clip, playlist=False, memory_mb=MEMORY_MB).frame_bytes
    assert len(examiner.frames(clip, 1, MEMORY_MB)) == 1


def test_it_has_few_descriptors(examiner: Examiner, make_clip: MakeClip) -> None:
    examiner.examine(make_clip("a.mp4", frames=2), playlist=False, memory_mb=MEMORY_MB)
    limits = Path(f"/proc/{child_of(examiner)}/limits").read_text().splitlines()
    [files] = [line for line in limits if line.startswith("Max open files")]
    assert int(files.split()[4]) <= 64
    [memory] = [line for line in limits if line.startswith("Max address space")]
    assert memory.split()[3] != "unlimited"


def test_frames_come_as_they_are(examiner: Examiner, make_clip: MakeClip) -> None:
    frames = examiner.frames(make_clip("a.mp4", options={"g": "5"}), 3, MEMORY_MB)
    assert [frame.shape for frame in frames] == [(64, 96, 3)] * 3
    assert len({frame.tobytes() for frame in frames}) == 3
    assert all(np.ptp(frame) > 50 for frame in frames)


class Scripted(Examiner):
    """Answers what a test has written down, one after the other."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__()
        self.answers = list(answers)

    def examine(self, path: Path, *, playlist: bool, memory_mb: int) -> Answer:
        return self.answers.pop(0)


GOOD, TEXT = Answer(frame_bytes=3, frame_size=(1, 1)), Answer(refused="a.mp4: is a text")
PASSING = [Answer(passing=True), Answer(refused="a.mp4: FFmpeg breaks over it", passing=True), Answer(unreadable="x")]


@pytest.mark.parametrize("first", PASSING)
def test_what_may_pass_is_not_believed_for_long(tmp_path: Path, first: Answer) -> None:
    """A process may have ended for want of memory, and a disk may have been away."""
    path = tmp_path / "a.mp4"
    path.write_bytes(b"x")
    now_s = [100.0]
    remembered = Remembered(Scripted(first, GOOD, TEXT), lambda: now_s[0])

    def asked() -> Answer:
        return remembered.examine(path, playlist=False, memory_mb=MEMORY_MB)

    assert asked() == first
    now_s[0] += PASSING_S - 1
    assert asked() == first, "a look at a graph asks several times"
    now_s[0] += 2
    assert asked() == GOOD
    now_s[0] += 1e9
    assert asked() == GOOD
    path.write_bytes(b"yy")
    assert asked() == TEXT


@pytest.mark.parametrize("is_folder", [True, False])
def test_files_that_a_folder_or_playlist_names_may_change(tmp_path: Path, is_folder: bool) -> None:
    path = tmp_path if is_folder else tmp_path / "a.m3u8"
    (tmp_path / "a.m3u8").write_bytes(b"x")
    now_s = [100.0]
    remembered = Remembered(Scripted(TEXT, GOOD), lambda: now_s[0])
    assert remembered.examine(path, playlist=not is_folder, memory_mb=MEMORY_MB) == TEXT
    now_s[0] += PASSING_S + 1
    assert remembered.examine(path, playlist=not is_folder, memory_mb=MEMORY_MB) == GOOD


def test_a_file_that_was_replaced_is_looked_at_again(make_clip: MakeClip, tmp_path: Path) -> None:
    clip = make_clip("a.mp4", frames=2)
    assert not examine(clip, playlist=False, memory_mb=MEMORY_MB).refused
    clip.write_text("dear diary\n" * 50)
    clip = clip.rename(tmp_path / "a.txt")
    assert "is a text" in examine(clip, playlist=False, memory_mb=MEMORY_MB).refused
