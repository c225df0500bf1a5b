from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from camgraph.pipeline.errors import EnvironmentProblem, GraphError, NeedsNewProcess, UserError
from camgraph.pipeline.graph import parse_graph
from camgraph.pipeline.messages import End, Stamp
from camgraph.pipeline.stage import Settings, Upstream
from camgraph.pipeline.testing import HandContext, feed, opened, stamp
from camgraph.stages import testing
from camgraph.stages.messages import Frame, Tracks
from camgraph.stages.sinks.sink_video import SinkVideo, SinkVideoSettings
from camgraph.stages.sinks.writing.annotation import annotated, clock_text
from camgraph.stages.sinks.writing.recording import Encoding, Recording, choose_encoder, even_size, rescue
from camgraph.stages.video.capture import Camera, Capture

HERE = Path(__file__).parent


def frame(at: Stamp, width: int = 320, height: int = 240) -> Frame:
    """A grey picture with a white square that moves to the right, 4 pixels a frame."""
    pixels = np.full((height, width, 3), 60, np.uint8)
    pixels[100:140, 4 * at.seq % (width - 40) :][:, :40] = 230
    pixels.flags.writeable = False
    return Frame(at, pixels, width, height)


def tracks(at: Stamp, width: int = 320, height: int = 240, people: int = 1) -> Tracks:
    boxes, joints = dict.fromkeys(range(1, people + 1), (150, 60, 220, 220)), np.zeros((17, 3))
    return replace(testing.tracks(boxes, frame_size=(width, height), keypoints=joints), stamp=at)


def items(count: int, camera: str = "cam", *, fps: float = 10, first: int = 0, **size: int) -> list[dict[str, object]]:
    stamps = [stamp(seq, camera, fps=fps) for seq in range(first, first + count)]
    return [{"frames": frame(at, **size), "tracks": tracks(at, **size)} for at in stamps]


def times(video: Path) -> list[Fraction]:
    """The time of each picture that can be decoded, in seconds."""
    with av.open(str(video)) as container:
        return [Fraction(f.pts) * f.time_base for f in container.decode(video=0)]


def record(folder: Path, what: list[dict[str, object]], settings: dict[str, object] | None = None, **more: object):
    with opened(SinkVideo, settings or {}, folder=folder, **more) as sink:
        list(sink.process(what))
    return sink


def test_every_frame_is_written_at_its_time(tmp_path) -> None:
    record(tmp_path, items(30))
    video = tmp_path / "videos" / "cam.mp4"
    assert times(video) == [Fraction(n, 10) for n in range(30)]
    with av.open(str(video)) as container:
        assert container.duration == 3_000_000
    assert not list(tmp_path.rglob("*.part"))


def test_unequal_distances_stay_unequal(tmp_path) -> None:
    at_ns = [5_000_000_000, 5_040_000_000, 7_000_000_000, 7_100_000_000]
    stamps = [stamp(seq)._replace(time_ns=time_ns) for seq, time_ns in enumerate(at_ns)]
    record(tmp_path, [{"frames": frame(at), "tracks": tracks(at)} for at in stamps])
    assert times(tmp_path / "videos" / "cam.mp4") == [0, Fraction("0.04"), 2, Fraction("2.1")]


def test_a_file_that_starts_over_goes_on_one_interval_later(tmp_path) -> None:
    again = [{"frames": frame(at), "tracks": tracks(at)} for at in (stamp(n, epoch=1) for n in range(3))]
    record(tmp_path, items(3) + again)
    assert times(tmp_path / "videos" / "cam.mp4") == [Fraction(n, 10) for n in range(6)]


def test_a_time_that_comes_twice_makes_the_video_no_longer(tmp_path) -> None:
    stamps = [stamp(seq)._replace(time_ns=seq // 2 * 200_000_000) for seq in range(20)]
    record(tmp_path, [{"frames": frame(at), "tracks": tracks(at)} for at in stamps])
    seen = times(tmp_path / "videos" / "cam.mp4")
    assert len(seen) == 20
    assert seen[-2] == Fraction(9, 5)
    assert all(earlier < later for earlier, later in pairwise(seen))


@pytest.mark.parametrize("name", ["b_frames.avi", "b_frames.mp4", "b_frames.ts", "bare.h264"])
def test_a_video_lasts_as_long_as_its_clip(make_clip, tmp_path, name) -> None:
    clip = make_clip(name, frames=40, options={"bf": "3", "b-adapt": "0"})
    capture = Capture(Settings(), "cam", Camera(url=str(clip)), HandContext(tmp_path, tmp_path))
    frames = capture.frames(threading.Event(), None)
    record(tmp_path, [{"frames": one, "tracks": tracks(one.stamp, one.width, one.height)} for one in frames])
    assert times(tmp_path / "videos" / "cam.mp4") == [Fraction(n, 10) for n in range(40)]
    with av.open(str(tmp_path / "videos" / "cam.mp4")) as container:
        assert container.duration == 4_000_000


def test_finish_completes_the_file_of_one_camera(tmp_path) -> None:
    both = [item for pair in zip(items(5, "a"), items(5, "b"), strict=True) for item in pair]
    with opened(SinkVideo, {}, folder=tmp_path, cameras=("a", "b")) as sink:
        list(sink.process(both))
        list(sink.finish("a", End(stamp(4, "a"))))
        assert len(times(tmp_path / "videos" / "a.mp4")) == 5
        assert not (tmp_path / "videos" / "b.mp4").exists()
    assert len(times(tmp_path / "videos" / "b.mp4")) == 5


def test_an_earlier_video_stays_and_the_next_one_has_a_number(tmp_path) -> None:
    for count in (5, 9, 7):
        sink = record(tmp_path, items(count))
    videos = tmp_path / "videos"
    assert [len(times(videos / name)) for name in ("cam.mp4", "cam.2.mp4", "cam.3.mp4")] == [5, 9, 7]
    assert sink.context.files == [videos / "cam.3.mp4"]


def test_numbers_count_on_behind_what_was_taken_away(tmp_path) -> None:
    for _ in range(3):
        record(tmp_path, items(2))
    (tmp_path / "videos" / "cam.mp4").unlink()
    record(tmp_path, items(2))
    assert sorted(path.name for path in (tmp_path / "videos").iterdir()) == ["cam.2.mp4", "cam.3.mp4", "cam.4.mp4"]


def test_two_runs_at_once_write_two_files(tmp_path) -> None:
    """As `camgraph run --name b` beside a run of the same graph."""
    with opened(SinkVideo, {}, folder=tmp_path, graph="a") as one, opened(SinkVideo, {}, folder=tmp_path) as other:
        for sink, count in ((one, 5), (other, 9)):
            list(sink.process(items(count)))
    assert len(times(tmp_path / "videos" / "cam.mp4")) == 5
    assert len(times(tmp_path / "videos" / "cam.2.mp4")) == 9


def test_a_file_that_somebody_put_there_meanwhile_stays(tmp_path) -> None:
    with opened(SinkVideo, {}, folder=tmp_path) as sink:
        list(sink.process(items(5)))
        (tmp_path / "videos" / "cam.mp4").write_text("mine")
    assert (tmp_path / "videos" / "cam.mp4").read_text() == "mine"
    assert len(times(tmp_path / "videos" / "cam.2.mp4")) == 5


def test_overwrite_replaces_once_new_video_is_complete(tmp_path) -> None:
    overwriting = {"overwrite": True}
    record(tmp_path, items(5))
    with opened(SinkVideo, overwriting, folder=tmp_path) as sink:
        list(sink.process(items(9)))
        assert len(times(tmp_path / "videos" / "cam.mp4")) == 5
    assert len(times(tmp_path / "videos" / "cam.mp4")) == 9
    assert [path.name for path in (tmp_path / "videos").iterdir()] == ["cam.mp4"]


def test_told_to_overwrite_it_replaces_nothing_of_its_own_run(tmp_path) -> None:
    """The second file of `cam` would have the name of the first of `cam.2`."""
    cameras = ("cam", "cam.2")
    for _ in range(2):
        what = items(5, "cam") + items(4, "cam.2") + items(3, "cam", first=5, width=160, height=120)
        record(tmp_path, what, {"overwrite": True}, cameras=cameras)
    seen = {path.name: len(times(path)) for path in (tmp_path / "videos").iterdir()}
    assert seen == {"cam.mp4": 5, "cam.2.mp4": 4, "cam.3.mp4": 3}


def test_both_pixel_formats_give_the_same_picture() -> None:
    at = stamp(3)
    bgr = frame(at)
    planes = cv2.cvtColor(bgr.pixels, cv2.COLOR_BGR2YUV_I420)
    yuv = Frame(at, planes, 320, 240, "yuv420p")
    a, b = (annotated(f, tracks(at), (320, 240), 0.3) for f in (bgr, yuv))
    assert np.abs(a.astype(int) - b).max() <= 6


def test_what_is_written_is_what_was_drawn(tmp_path) -> None:
    record(tmp_path, items(3), {"crf": 10})
    with av.open(str(tmp_path / "videos" / "cam.mp4")) as container:
        seen = [f.to_ndarray(format="bgr24") for f in container.decode(video=0)][2]
    drawn = annotated(frame(stamp(2)), tracks(stamp(2)), (320, 240), 0.3)
    from_drawn, from_plain = (np.abs(seen.astype(int) - picture).mean() for picture in (drawn, frame(stamp(2)).pixels))
    assert from_drawn < 1.5
    assert from_drawn < from_plain / 2


def test_a_picture_is_made_smaller_and_its_people_with_it() -> None:
    at = stamp()
    half = annotated(frame(at, 640, 480), tracks(at, 640, 480), (320, 240), 0.3)
    plain = annotated(frame(at, 640, 480), tracks(at, 640, 480, people=0), (320, 240), 0.3)
    rows, columns = np.nonzero((half != plain).any(axis=2))
    assert abs(columns.min() - 75) <= 2
    assert abs(rows.max() - 110) <= 2


@pytest.mark.parametrize(
    ("size", "widest", "expected"),
    [
        ((1920, 1080), 1280, (1280, 720)),
        ((427, 241), 1280, (426, 240)),
        ((64, 3000), 64, (64, 3000)),
        ((1, 1), 64, (2, 2)),
    ],
)
def test_sizes_are_even_and_never_grow(size, widest, expected) -> None:
    assert even_size(size, widest) == expected


def test_odd_pictures_are_recorded(tmp_path) -> None:
    record(tmp_path, items(4, width=321, height=243))
    with av.open(str(tmp_path / "videos" / "cam.mp4")) as container:
        assert (container.streams.video[0].width, container.streams.video[0].height) == (320, 242)


def test_another_picture_size_goes_on_in_another_file(tmp_path) -> None:
    record(tmp_path, items(5) + items(4, first=5, width=160, height=120))
    assert len(times(tmp_path / "videos" / "cam.mp4")) == 5
    assert len(times(tmp_path / "videos" / "cam.2.mp4")) == 4


def test_photographs_of_all_sizes_are_shown_in_one_file(tmp_path) -> None:
    sizes = [(320, 240), (240, 320), (640, 480), (64, 48)]
    stamps = [stamp(seq, fps=1)._replace(alone=True) for seq in range(len(sizes))]
    show = [{"frames": frame(at, *size), "tracks": tracks(at, *size)} for at, size in zip(stamps, sizes, strict=True)]
    record(tmp_path, show)
    assert times(tmp_path / "videos" / "cam.mp4") == [0, 1, 2, 3]
    with av.open(str(tmp_path / "videos" / "cam.mp4")) as container:
        shown = [one.to_ndarray(format="bgr24") for one in container.decode(video=0)]
    assert shown[1].shape == (240, 320, 3)
    assert shown[1][:, :60].max() < 40, "the upright one stands between black borders"
    assert shown[1][60:180, 90:230].mean() > 40


def test_a_long_video_goes_on_in_another_file(tmp_path) -> None:
    sink = record(tmp_path, items(25), {"segment_minutes": 1 / 60})
    names = [tmp_path / "videos" / f"cam{n}.mp4" for n in ("", ".2", ".3")]
    assert [len(times(name)) for name in names] == [11, 11, 3]
    assert json.loads((sink.context.state_folder / "videos.0.json").read_text()) == {"cam": [str(names[0]), 3]}


@pytest.mark.parametrize(("away_s", "minutes"), [(2 * 3600, 60), (10 * 3600, 60), (10 * 3600, 1e5)])
def test_a_camera_that_was_away_goes_on_in_another_file(tmp_path: Path, away_s: int, minutes: float) -> None:
    later = [one._replace(time_ns=one.time_ns + away_s * 1_000_000_000) for one in map(stamp, range(5, 8))]
    what = items(5) + [{"frames": frame(at), "tracks": tracks(at)} for at in later]
    sink = record(tmp_path, what, {"segment_minutes": minutes})
    assert [len(times(tmp_path / "videos" / f"cam{n}.mp4")) for n in ("", ".2")] == [5, 3]
    assert "dropped.write_failed" not in {name for name, _ in sink.context.counts}


def test_a_short_absence_stays_in_the_video(tmp_path: Path) -> None:
    what = [{"frames": frame(at), "tracks": tracks(at)} for at in (stamp(0), stamp(1)._replace(time_ns=1800 * 10**9))]
    record(tmp_path, what)
    assert times(tmp_path / "videos" / "cam.mp4") == [0, 1800]


def test_told_to_overwrite_a_new_process_spares_those_before(tmp_path) -> None:
    overwriting: dict[str, object] = {"overwrite": True, "segment_minutes": 1 / 60}
    record(tmp_path, items(25), overwriting)
    record(tmp_path, items(20, first=25), overwriting, incarnation=2)
    videos = sorted((tmp_path / "videos").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert [len(times(path)) for path in videos] == [11, 11, 3, 11, 9]
    record(tmp_path, items(4), overwriting)
    assert len(times(tmp_path / "videos" / "cam.mp4")) == 4


def test_told_to_overwrite_it_uses_an_empty_name_again(tmp_path) -> None:
    with opened(SinkVideo, {"overwrite": True}, folder=tmp_path) as sink:
        feed(sink, items(2))
        sink._give_up("cam", OSError(28, "No space left on device"))
        feed(sink, items(10, first=400))
    assert [path.name for path in (tmp_path / "videos").iterdir()] == ["cam.mp4"]


def test_mpeg4_where_there_is_no_h264(tmp_path) -> None:
    record(tmp_path, items(12), {"codec": "mpeg4"})
    video = tmp_path / "videos" / "cam.mp4"
    assert times(video) == [Fraction(n, 10) for n in range(12)]
    with av.open(str(video)) as container:
        assert container.streams.video[0].codec_context.name == "mpeg4"


def test_a_fixed_rate_is_kept(tmp_path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (100, 240, 320, 3), np.uint8)
    sizes = []
    for kbps in (100, 800):
        recording = Recording(tmp_path / f"{kbps}.mp4", (320, 240), Encoding(choose_encoder("auto"), bitrate_kbps=kbps))
        for n, picture in enumerate(noise):
            recording.write(picture, n * 40_000_000)
        recording.close()
        sizes.append((tmp_path / f"{kbps}.mp4").stat().st_size)
    assert sizes[0] * 2 < sizes[1]


CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from camgraph.pipeline.testing import HandContext
from test_sink_video import SinkVideo, SinkVideoSettings, items
folder = Path(sys.argv[1])
sink = SinkVideo(SinkVideoSettings(), HandContext(folder, folder))
sink.open()
list(sink.process(items(100)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_the_part_is_kept_and_a_second_file_goes_on(tmp_path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), str(Path(__file__).parent)], timeout=60, check=False
    )
    assert child.returncode == -signal.SIGKILL
    part = tmp_path / "videos" / "cam.mp4.part"
    assert 75 <= len(times(part)) <= 100, "a killed run's part plays"
    record(tmp_path, items(20, first=100), incarnation=2)
    assert 75 <= len(times(tmp_path / "videos" / "cam.mp4")) <= 100
    assert len(times(tmp_path / "videos" / "cam.2.mp4")) == 20
    assert not part.exists()


def killed_run(folder: Path) -> None:
    """A run writes 100 frames, and is killed with all of its processes."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), str(Path(__file__).parent)], timeout=60, check=False
    )
    assert child.returncode == -signal.SIGKILL


def test_what_a_killed_run_left_stays_in_the_next_run(tmp_path) -> None:
    killed_run(tmp_path)
    sink = record(tmp_path, items(20))
    videos = tmp_path / "videos"
    assert 75 <= len(times(videos / "cam.mp4")) <= 100
    assert len(times(videos / "cam.2.mp4")) == 20
    assert sink.context.files == [videos / "cam.mp4", videos / "cam.2.mp4"]
    assert not list(videos.glob("*.part"))


def test_what_two_killed_runs_left_stays_beside_what_was_there(tmp_path) -> None:
    record(tmp_path, items(3))
    killed_run(tmp_path)
    (tmp_path / "videos" / "cam.2.mp4.part").rename(tmp_path / "videos" / "cam.mp4.part")
    killed_run(tmp_path)
    record(tmp_path, items(5))
    names = ("cam.mp4", "cam.2.mp4", "cam.3.mp4", "cam.4.mp4")
    first, second, third, last = (len(times(tmp_path / "videos" / name)) for name in names)
    assert (first, last) == (3, 5)
    assert 75 <= second <= 100
    assert 75 <= third <= 100


def test_part_of_a_living_run_is_left_alone(tmp_path) -> None:
    with opened(SinkVideo, {}, folder=tmp_path) as living:
        list(living.process(items(30)))
        record(tmp_path, items(5))
        list(living.process(items(10, first=30)))
    assert len(times(tmp_path / "videos" / "cam.mp4")) == 40
    assert len(times(tmp_path / "videos" / "cam.2.mp4")) == 5


def test_parts_of_other_cameras_and_programs_are_left_alone(tmp_path) -> None:
    (tmp_path / "videos").mkdir()
    others = [tmp_path / "videos" / name for name in ("holiday.mp4.part", "camera.mp4.part", "cam.x.mp4.part")]
    for other in others:
        other.write_bytes(b"half of a download")
    record(tmp_path, items(5))
    assert all(other.read_bytes() == b"half of a download" for other in others)


def test_a_path_of_date_time_and_run(tmp_path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    path = "films/{run}/{camera}/{date}_{time}.mp4"
    record(tmp_path, items(5), {"path": path}, graph="lobby")
    [video] = (tmp_path / "films" / "lobby" / "cam").iterdir()
    begun = datetime.strptime(video.name, "%Y-%m-%d_%H-%M-%S.mp4").replace(tzinfo=UTC)
    assert before <= begun <= datetime.now(UTC)


def test_what_was_killed_under_a_date_is_found(tmp_path) -> None:
    path = "films/{camera}/{date}/{time}.mp4"
    killed_run(tmp_path)
    folder = tmp_path / "films" / "cam" / "2026-11-22"
    folder.mkdir(parents=True)
    (tmp_path / "videos" / "cam.mp4.part").rename(folder / "10-44-39.mp4.part")
    sink = record(tmp_path, items(5), {"path": path})
    assert sink.context.files[0] == folder / "10-44-39.mp4"
    assert 75 <= len(times(folder / "10-44-39.mp4")) <= 100


def test_only_folders_after_a_placeholder_are_made(tmp_path) -> None:
    record(tmp_path, items(5), {"path": f"{tmp_path}/{{camera}}/{{run}}.mp4"})
    assert len(times(tmp_path / "cam" / "test.mp4")) == 5
    with pytest.raises(UserError, match="no such folder"):
        record(tmp_path, items(5), {"path": f"{tmp_path}/absent/{{camera}}/{{run}}.mp4"})


def test_two_writers_of_one_file_are_refused(tmp_path) -> None:
    encoding = Encoding(choose_encoder("auto"))
    first = Recording(tmp_path / "a.mp4", (64, 64), encoding)
    with pytest.raises(FileExistsError):
        Recording(tmp_path / "a.mp4", (64, 64), encoding)
    with pytest.raises(EnvironmentProblem, match="another run is writing this video"):
        Recording(tmp_path / "a.mp4", (64, 64), encoding, replace=True)
    first.abandon()
    assert list(tmp_path.iterdir()) == []


def test_link_in_place_of_part_is_left_alone(tmp_path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    part = tmp_path / "a.mp4.part"
    part.symlink_to(precious)
    with pytest.raises(OSError, match="is a symbolic link, expected a regular file"):
        Recording(tmp_path / "a.mp4", (64, 64), Encoding(choose_encoder("auto")), replace=True)
    with pytest.raises(FileExistsError):
        Recording(tmp_path / "a.mp4", (64, 64), Encoding(choose_encoder("auto")))
    assert not rescue(tmp_path / "a.mp4")
    part.unlink()
    os.mkfifo(part)
    assert not rescue(tmp_path / "a.mp4")
    assert precious.read_bytes() == b"precious"


def test_a_failing_disk_costs_the_video_and_not_the_run(tmp_path) -> None:
    """Files that may not grow beyond 2 MB: the first part is kept, later frames counted, and one retry made."""
    child = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), str(HERE)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert child.returncode == 0, child.stderr
    dropped = int(child.stdout.splitlines()[-1])
    kept = len(times(tmp_path / "videos" / "cam.mp4"))
    later = len(times(tmp_path / "videos" / "cam.2.mp4"))
    assert 10 <= kept < 100
    assert later >= 5
    assert dropped == 380 - kept - later, "every frame is in a file or counted"
    assert "File too large" in child.stdout
    assert f"kept={tmp_path}/videos/cam.mp4 kept_frames={kept}" in child.stdout
    assert [path.name for path in sorted((tmp_path / "videos").iterdir())] == ["cam.2.mp4", "cam.mp4"]


def test_disk_full_at_end_leaves_no_broken_file(tmp_path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", FULL.replace("2_000_000", "4096").replace("380", "10"), str(tmp_path), str(HERE)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines()[-1] == "10"
    assert "kept_frames=0 lost_frames=10" in child.stdout
    assert list((tmp_path / "videos").iterdir()) == []


def test_a_name_whose_file_came_to_nothing_is_used_again(tmp_path) -> None:
    with opened(SinkVideo, {}, folder=tmp_path) as sink:
        feed(sink, items(2))
        sink._give_up("cam", OSError(28, "No space left on device"))
        feed(sink, items(10, first=400))
    assert [path.name for path in (tmp_path / "videos").iterdir()] == ["cam.mp4"]
    assert len(times(tmp_path / "videos" / "cam.mp4")) == 10
    assert sink.context.counts["dropped.write_failed", "cam"] == 2


def test_a_disk_that_takes_no_video_is_said_until_it_does(tmp_path) -> None:
    """Drops alone do not tell people that they have to make room."""
    with opened(SinkVideo, {}, folder=tmp_path) as sink:
        feed(sink, items(2))
        assert sink.context.troubles == {}
        sink._give_up("cam", OSError(28, "No space left on device"))
        path = tmp_path / "videos" / "cam.mp4"
        assert sink.context.troubles == {"cam": f"{path}: cannot write the video: No space left on device"}
        feed(sink, items(10, first=400))
        assert sink.context.troubles, "the first frames of a new file wait in the encoder"
        feed(sink, items(30, first=410))
        assert sink.context.troubles == {}


@pytest.mark.parametrize("moved", [True, False])
def test_when_its_folder_goes_a_new_video_begins_at_once(tmp_path: Path, moved: bool) -> None:
    """It went on for the rest of a segment, and all of it was lost when the file was closed."""
    with opened(SinkVideo, {}, folder=tmp_path) as sink:
        feed(sink, items(5))
        if moved:
            (tmp_path / "videos").rename(tmp_path / "old")
        else:
            shutil.rmtree(tmp_path / "videos")
        feed(sink, items(15, first=5))
        lost = sink.context.counts["dropped.write_failed", "cam"]
        assert 5 <= lost <= 15, "no more than those of a second"
        assert "the file was taken away while it was written" in sink.context.troubles["cam"]
        feed(sink, items(40, first=20))
        assert sink.context.troubles == {}
    assert len(times(tmp_path / "videos" / "cam.mp4")) == 60 - lost
    assert (tmp_path / "old").exists() is moved


def test_a_video_is_tried_again_in_a_folder_that_is_not_made(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with opened(SinkVideo, {"path": f"{folder}/{{camera}}.mp4"}, folder=tmp_path) as sink:
        feed(sink, items(5))
        shutil.rmtree(folder)
        feed(sink, items(20, first=5))
        assert "no such folder" in sink.context.troubles["cam"]
        folder.mkdir()
        feed(sink, items(10, first=400))
        assert sink.context.counts["dropped.write_failed", "cam"] == 25
    assert len(times(folder / "cam.mp4")) == 10


def test_a_file_that_cannot_be_begun_leaves_nothing(tmp_path) -> None:
    with pytest.raises((av.FFmpegError, ValueError)):
        Recording(tmp_path / "a.mp4", (64, 64), Encoding("no_such_encoder"))
    assert list(tmp_path.iterdir()) == []


def test_an_abandoned_file_is_let_go_of_once(tmp_path) -> None:
    """Closing may fail after the descriptor is closed, when its number may already belong to another file."""
    recording = Recording(tmp_path / "a.mp4", (64, 64), Encoding(choose_encoder("auto")))
    recording.write(np.zeros((64, 64, 3), np.uint8), 0)
    recording.close()
    with (tmp_path / "other").open("w") as other:
        assert recording.abandon() is None
        other.write("still open")
    assert (tmp_path / "other").read_text() == "still open"


FULL = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from camgraph.pipeline.testing import HandContext
from test_sink_video import *
folder = Path(sys.argv[1])
rng = np.random.default_rng(1)
def noisy(item):
    pixels = rng.integers(0, 255, (240, 320, 3), np.uint8)
    return {"frames": Frame(item["frames"].stamp, pixels, 320, 240), "tracks": item["tracks"]}
sink = SinkVideo(SinkVideoSettings(), HandContext(folder, folder))
sink.open()
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
for item in items(380):
    list(sink.process([noisy(item)]))
sink.close()
print(sink.context.counts["dropped.write_failed", "cam"])
"""


def test_an_unwritable_folder_is_named_at_the_start(tmp_path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"/proc: cannot write videos here: .*; change its permissions"):
        record(tmp_path, [], {"path": "/proc/{camera}.mp4"})


def test_a_missing_absolute_folder_is_not_made(tmp_path) -> None:
    with pytest.raises(UserError, match="no such folder; make it, mount its disk"):
        record(tmp_path, [], {"path": f"{tmp_path}/gone/{{camera}}.mp4"})


def test_a_path_that_two_cameras_would_share_is_refused() -> None:
    with pytest.raises(ValueError, match=r"without \{camera\} all cameras would write one file"):
        SinkVideoSettings(path="videos/{date}.mp4")


def test_clock_shows_media_time_without_wall_clock() -> None:
    at = stamp()._replace(time_ns=3_723_450_000_000, wall_ns=3_723_450_000_000)
    assert clock_text(at) == "1:02:03.4"
    assert clock_text(at._replace(time_ns=83_990_000_000)) == "01:23.9"
    assert clock_text(at._replace(wall_ns=1_700_000_000_000_000_000)) == "2023-11-14 22:13:20 UTC"


GRAPH = """\
version: 1
cameras: {{cam: {{url: clip.mp4}}}}
stages:
  capture: {{use: capture}}
  videos: {{use: sink_video, from: {{frames: capture, tracks: tracks}}{videos}}}
  prepare: {{use: preprocess, from: capture, with: {{size: [96, 64]}}}}
  people: {{use: decode, from: prepare, with: {{format: yolo_pose, outputs: [image], keypoints: 17}}}}
  tracks: {{use: track, from: people}}
{rules}"""
END = "  end: {use: sink_jsonl, from: events, with: {path: e.jsonl}}\n"
FILE = "  actions: {use: rules, from: tracks, with: {file: rules.yaml}}\n"
INLINE = "  more: {use: rules, from: tracks, with: {min_confidence: 0.15, rules: [{id: a, when: age > 1s}]}}\n"


@pytest.mark.parametrize(
    ("videos", "rules", "floor"),
    [
        ("", FILE, 0.05),
        ("", INLINE, 0.15),
        ("", FILE + INLINE, 0.3),
        ("", "", 0.3),
        (", with: {rules: rules.yaml}", FILE + INLINE, 0.05),
        (", with: {rules_text: ''}", FILE, 0.3),
        (", with: {min_confidence: 0.5}", FILE, 0.5),
    ],
)
def test_what_is_drawn_is_what_is_judged(tmp_path: Path, videos: str, rules: str, floor: float) -> None:
    (tmp_path / "clip.mp4").touch()
    (tmp_path / "rules.yaml").write_text("version: 1\nmin_confidence: 0.05\nrules: [{id: b, when: age > 1s}]\n")
    graph = parse_graph(
        GRAPH.format(videos=videos, rules=rules + (END if rules else "")), "g.yaml", base_folder=tmp_path, environ={}
    )
    settings = next(node.settings for node in graph.completed.nodes if node.name == "videos")
    with opened(SinkVideo, settings.model_dump(mode="json"), folder=tmp_path) as sink:
        assert sink._floor("cam") == floor


def test_a_video_goes_by_the_clocks_of_the_rules_beside_it(tmp_path: Path) -> None:
    rules = {"file": None, "text": "version: 1\nrules: [{id: b, when: age > 1s}]", "heads": False}
    told = [rules, {**rules, "clocks": {"cam": "wall"}}]
    for facts, clocks in zip(told, ({}, {"cam": "wall"}), strict=True):
        upstream = Upstream({}, beside={"actions": {"rules": facts}})
        followed = SinkVideo.follow(SinkVideoSettings(), tmp_path, upstream)
        assert followed.get("rules_clocks", {}) == clocks
        with opened(SinkVideo, dict(followed), folder=tmp_path) as sink:
            assert sink._onlooker._clocks == clocks
    several = Upstream({}, beside={name: {"rules": rules} for name in ("actions", "more")})
    assert SinkVideo.follow(SinkVideoSettings(), tmp_path, several) == {}


def test_rules_are_seen_to_fire(tmp_path: Path) -> None:
    rules = "version: 1\nzones: {all: [[0, 0], [1, 0], [1, 1]]}\nrules: [{id: seen, when: age >= 0.2s}]"
    record(tmp_path, items(10), {"rules_text": rules})
    with av.open(str(tmp_path / "videos" / "cam.mp4")) as video:
        shown = [picture.to_ndarray(format="bgr24").astype(int) for picture in video.decode(video=0)]
    box = shown[9][80:200, 147:153]
    assert (box[..., 2] - box[..., 1] > 80).any(), "the box of whom the rule fires on is red"
    assert (shown[9][225:].min(axis=2) > 180).any(), "the reason stands below"
    assert not (shown[0][225:].min(axis=2) > 180).any()


def test_a_mistake_in_the_rules_is_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("version: 1\nrules: [{id: b, when: agee > 1s}]\n")
    with pytest.raises(GraphError, match=r"wrong\.yaml:2:"):
        list(SinkVideo.check(SinkVideoSettings(rules="wrong.yaml"), tmp_path))


def test_other_rules_are_shown_in_the_same_video(tmp_path: Path) -> None:
    """Those that are as before go on; with anything else changed it begins anew."""
    rules = "version: 1\nrules: [{id: seen, when: age >= 0.2s}, {id: also, when: age > 9s}]"
    settings: dict[str, object] = {"rules_text": rules}
    with opened(SinkVideo, settings, folder=tmp_path) as sink:
        list(sink.process(items(10)))
        other = {"rules_text": rules.replace("also", "other").replace("9s", "0.5s")}
        sink.change_settings(SinkVideoSettings.model_validate(other))
        list(sink.process(items(10, first=10)))
        firing = sink._onlooker._cameras["cam"].firing.now(0)
        assert sorted(one.action for one in firing) == ["other", "seen"]
        for more in ({**other, "max_width": 64}, {"rules_text": ""}, {}):
            with pytest.raises(NeedsNewProcess):
                sink.change_settings(SinkVideoSettings.model_validate(more))
    assert len(times(tmp_path / "videos" / "cam.mp4")) == 20
