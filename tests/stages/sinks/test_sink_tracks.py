"""Tracks as files: their rows, their names, and nothing lost or doubled by a kill at any byte."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.pipeline.errors import EnvironmentProblem, GraphError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.messages import End
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import HandContext, feed, hit, opened, run_graph, stamp
from camgraph.stages import events
from camgraph.stages.messages import Tracks
from camgraph.stages.sinks.sink_tracks import SinkTracks, SinkTracksSettings
from camgraph.stages.sinks.writing.output_names import part_of

FORMATS = ("mot", "jsonl")
SUFFIX = {"mot": ".txt", "jsonl": ".jsonl"}


def tracks(seq: int, people: int = 2, camera: str = "cam", epoch: int = 0) -> Tracks:
    random = np.random.default_rng([seq, epoch])
    return Tracks(
        stamp(seq, camera, epoch=epoch)._replace(clock="file"),
        (random.random((people, 4), np.float32) + np.float32((0, 0, 1, 1))) * 100,
        random.random(people, np.float32),
        random.random((people, 17, 3), np.float32) * np.float32((640, 480, 1)),
        (640, 480),
        np.zeros(people, np.int64),
        "coco-17",
        np.arange(1, people + 1),
        np.arange(people) * 5,
    )


def some(*numbers: int, camera: str = "cam") -> list[Tracks]:
    """Frames with 0 to 3 people."""
    return [tracks(number, number % 4, camera) for number in numbers]


def write(folder: Path, what: Sequence[Tracks], form: str, *, batch: int = 3, **more: Any) -> SinkTracks:
    chosen = {name: more.pop(name) for name in list(more) if name in SinkTracksSettings.model_fields}
    with opened(SinkTracks, {"format": form, **chosen}, folder=folder, **more) as sink:
        feed(sink, what, batch=batch)
    return sink


def killed(folder: Path, what: Sequence[Tracks], form: str, *, incarnation: int = 1, **settings: Any) -> Path:
    """Write frames and die: locks end, nothing is completed. Returns the unfinished file."""
    context = HandContext(folder, folder, incarnation=incarnation)
    sink = SinkTracks(SinkTracksSettings.model_validate({"format": form, **settings}), context)
    sink.open()
    feed(sink, what)
    (file,) = sink._files.values()
    file.close()
    return part_of(file.target)


def rows_of(path: Path, form: str) -> list[int]:
    """The number of the frame of each row."""
    if form == "mot":
        return [int(line.split(",")[0]) - 1 for line in path.read_text().splitlines()]
    return [json.loads(line)["seq"] for line in path.read_text().splitlines()]


def seqs(folder: Path, form: str, name: str = "cam") -> list[int]:
    """The frames in a file, made by `some`; fails if a row comes twice or is missing."""
    rows = rows_of(folder / "tracks" / f"{name}{SUFFIX[form]}", form)
    found = sorted(set(rows))
    assert rows == (found if form == "jsonl" else [seq for seq in found for _ in range(seq % 4)])
    return found


def expected(form: str, numbers: range) -> list[int]:
    """JSON lines have the frames without people too."""
    return [number for number in numbers if form == "jsonl" or number % 4]


def test_mot_rows_are_as_motchallenge_has_them(tmp_path: Path) -> None:
    one = tracks(4, 1)
    one.boxes[:] = (10.004, 20.126, 40.5, 99.996)
    one.scores[:] = 0.98765
    write(tmp_path, [tracks(3, 0), one], "mot")
    assert (tmp_path / "tracks" / "cam.txt").read_text() == "5,1,10.00,20.13,30.50,79.87,0.988,-1,-1,-1\n"


def test_mot_columns_are_read_as_numbers(tmp_path: Path) -> None:
    frames = some(1, 2, 3)
    write(tmp_path, frames, "mot")
    table = np.loadtxt(tmp_path / "tracks" / "cam.txt", delimiter=",")
    assert table.shape == (6, 10)
    assert table[:, 0].tolist() == [2, 3, 3, 4, 4, 4]
    corners = np.concatenate([one.boxes for one in frames])
    assert np.abs(table[:, 2:4] + table[:, 4:6] - corners[:, 2:]).max() < 0.006


def test_a_json_line_has_a_frame_with_its_people(tmp_path: Path) -> None:
    frames = [tracks(7, 2), tracks(8, 0)]
    write(tmp_path, frames, "jsonl")
    first, second = map(json.loads, (tmp_path / "tracks" / "cam.jsonl").read_text().splitlines())
    assert second["people"] == []
    assert {name: first[name] for name in first if name != "people"} == {
        "camera": "cam",
        "epoch": 0,
        "seq": 7,
        "pts": 7,
        "time_base": [1, 10],
        "time_s": 0.7,
        "time": "1970-01-01T00:00:00.700Z",
        "clock": "file",
        "width": 640,
        "height": 480,
        "keypoints_format": "coco-17",
    }
    assert [person["track_id"] for person in first["people"]] == [1, 2]
    assert [person.get("continues") for person in first["people"]] == [None, 5]


@given(st.lists(st.floats(-20_000, 20_000, width=32), min_size=7, max_size=7))
def test_people_are_rounded_as_in_events(values: list[float]) -> None:
    box, joint = np.array(values[:4], np.float32), np.array([values[4:]], np.float32)
    score = np.float32(abs(values[6]) / 20_000)
    from camgraph.stages.sinks.writing.track_lines import json_line

    one = Tracks(
        stamp(0), box[None], score[None], joint[None], (640, 480), np.zeros(1, np.int64), "x", np.ones(1, np.int64)
    )
    made = json.loads(json_line(one))["people"][0]
    assert made == events.person(1, box, float(score), joint).model_dump(mode="json", exclude_none=True)


def test_joints_that_are_no_numbers_are_0() -> None:
    from camgraph.stages.sinks.writing.track_lines import rounded

    one = tracks(1, 1)
    one.keypoints[0, 3] = (np.nan, 5, 0.5)
    assert rounded(one).keypoints[0, 3].tolist() == [0, 0, 0]


@pytest.mark.parametrize("form", FORMATS)
def test_batches_do_not_matter(tmp_path: Path, form: str) -> None:
    made = []
    for batch in (1, 3, 50):
        folder = tmp_path / str(batch)
        folder.mkdir()
        write(folder, some(*range(50)), form, batch=batch)
        made.append({path.name: path.read_bytes() for path in (folder / "tracks").iterdir()})
    assert made[0] == made[1] == made[2]
    assert len(made[0]) == 1


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_is_unfinished_until_its_camera_ends(tmp_path: Path, form: str) -> None:
    with opened(SinkTracks, {"format": form}, folder=tmp_path, cameras=("a", "b")) as sink:
        feed(sink, some(1, 2, camera="a") + some(1, 2, camera="b"))
        list(sink.finish("a", End(stamp(2, "a"))))
        names = sorted(path.name for path in (tmp_path / "tracks").iterdir())
        assert names == [f"a{SUFFIX[form]}", f"b{SUFFIX[form]}.part"]
    assert seqs(tmp_path, form, "b") == [1, 2]


@pytest.mark.parametrize("form", ["mot", "jsonl"])
def test_an_epoch_begins_a_file_where_frames_have_none(tmp_path: Path, form: str) -> None:
    write(tmp_path, [tracks(1), tracks(2), tracks(0, epoch=1), tracks(1, epoch=1)], form)
    assert len(list((tmp_path / "tracks").iterdir())) == (2 if form == "mot" else 1)


def test_a_long_file_goes_on_in_another(tmp_path: Path) -> None:
    write(tmp_path, some(*range(1, 20)), "jsonl", segment_minutes=1 / 60)
    assert seqs(tmp_path, "jsonl") == list(range(1, 12))
    assert seqs(tmp_path, "jsonl", "cam.2") == list(range(12, 20))


def rounds(count: int, frames: int) -> list[Tracks]:
    """A file that is read again and again, at 10 frames a second."""
    return [tracks(seq, epoch=epoch) for epoch in range(count) for seq in range(frames)]


@pytest.mark.parametrize("kill", [False, True])
def test_the_rounds_of_a_file_count_together(tmp_path: Path, kill: bool) -> None:
    """Six of 0.6 s, of which each second begins a file; a new process knows how long the present one is."""
    frames, limit = rounds(6, 7), {"segment_minutes": 1 / 60}
    if kill:
        killed(tmp_path, frames[:10], "jsonl", **limit)
    write(tmp_path, frames[8 if kill else 0 :], "jsonl", incarnation=1 + kill, **limit)
    names = [f"cam{number}.jsonl" for number in ("", ".2", ".3", ".4")]
    assert sorted(path.name for path in (tmp_path / "tracks").iterdir()) == sorted(names)
    written = [rows_of(tmp_path / "tracks" / name, "jsonl") for name in names]
    assert [len(rows) for rows in written] == [12, 13, 13, 4]


def test_an_earlier_file_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    for last, overwrite in ((3, False), (4, False), (5, True)):
        write(tmp_path, some(*range(1, last)), "jsonl", overwrite=overwrite)
    assert seqs(tmp_path, "jsonl") == [1, 2, 3, 4]
    assert seqs(tmp_path, "jsonl", "cam.2") == [1, 2, 3]


def test_told_to_overwrite_it_spares_the_files_of_its_own_run(tmp_path: Path) -> None:
    """Also of a process before this one; what is kept for that does not grow with the files."""
    limit: dict[str, Any] = {"overwrite": True, "segment_minutes": 1 / 60, "cameras": ("cam", "cam.2")}
    for _ in range(2):
        write(tmp_path, some(*range(25)), "jsonl", **limit)
        sink = write(tmp_path, some(*range(25, 45)), "jsonl", incarnation=2, **limit)
    names = [f"cam{number}" for number in ("", ".3", ".4", ".5", ".6")]
    assert [seq for name in names for seq in seqs(tmp_path, "jsonl", name)] == list(range(45))
    assert len(list((tmp_path / "tracks").iterdir())) == len(names)
    kept = json.loads((sink.context.state_folder / "tracks.0.json").read_text())["given"]
    assert kept == {"cam": [str(tmp_path / "tracks" / "cam.jsonl"), 6]}


def test_cameras_get_files_with_safe_names(tmp_path: Path) -> None:
    cameras = ("Süd", "вход", "a-b")
    write(tmp_path, [tracks(1, camera=camera) for camera in cameras], "mot", cameras=cameras)
    names = [path.name for path in (tmp_path / "tracks").iterdir()]
    assert len(names) == 3
    assert all(name.isascii() and "/" not in name for name in names)


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=40)
@given(count=st.integers(1, 14), cut=st.floats(0, 1), back=st.integers(0, 14))
def test_a_kill_at_any_byte_loses_and_doubles_nothing(form: str, count: int, cut: float, back: int) -> None:
    """The file as a kill may leave it, cut at any byte; then the frames that were not done come again, and others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        part = killed(folder, some(*range(count)), form)
        os.truncate(part, round(part.stat().st_size * cut))
        whole = _frames_in(part, form)
        write(folder, some(*range(max(0, whole - back), count + 3)), form, incarnation=2)
        assert seqs(folder, form) == expected(form, range(count + 3))
        assert len(list((folder / "tracks").iterdir())) == 1


def _frames_in(part: Path, form: str) -> int:
    """The number of the first frame that is not whole in the file."""
    lines = part.read_bytes().split(b"\n")[:-1]
    if form == "jsonl":
        return len(lines)
    return max((int(line.split(b",")[0]) - 1 for line in lines), default=0)  # the last one may lack people


@pytest.mark.parametrize("form", FORMATS)
def test_frames_after_the_end_of_a_camera_are_known_again(tmp_path: Path, form: str) -> None:
    """The process died after the file was complete, and before it could say so."""
    write(tmp_path, some(1, 2, 3), form)
    sink = write(tmp_path, some(2, 3), form, incarnation=2)
    assert sink.context.counts == {("repeated", "cam"): 2}
    assert [path.name for path in (tmp_path / "tracks").iterdir()] == [f"cam{SUFFIX[form]}"]


@pytest.mark.parametrize("form", FORMATS)
def test_the_next_run_completes_what_a_killed_one_has_left(tmp_path: Path, form: str) -> None:
    part = killed(tmp_path, some(1, 2, 3), form)
    whole = part.stat().st_size
    with part.open("ab") as torn:
        torn.write(b'{"camera": "cam"' if form == "jsonl" else b"5,")
    write(tmp_path, some(1, 2), form)
    assert seqs(tmp_path, form) == [1, 2, 3]
    assert seqs(tmp_path, form, "cam.2") == [1, 2]
    assert whole > 0


def test_the_file_of_a_living_run_is_left_alone(tmp_path: Path) -> None:
    with opened(SinkTracks, {}, folder=tmp_path) as living:
        feed(living, some(1, 2))
        write(tmp_path, some(1), "jsonl")
        feed(living, some(3))
    assert seqs(tmp_path, "jsonl") == [1, 2, 3]
    assert seqs(tmp_path, "jsonl", "cam.2") == [1]


@pytest.mark.parametrize("form", ["mot", "jsonl"])
def test_frames_begin_a_line_behind_text_of_others(tmp_path: Path, form: str) -> None:
    with opened(SinkTracks, {"format": form}, folder=tmp_path) as sink:
        feed(sink, some(1))
        part = next((tmp_path / "tracks").glob("*.part"))
        with part.open("ab") as other:
            other.write(b"a note")
        feed(sink, some(5, 6))
        lines = part.read_bytes().splitlines()
    assert (len(lines), lines[1]) == (5 if form == "mot" else 4, b"a note")


def test_a_file_that_somebody_takes_away_ends_no_run(tmp_path: Path) -> None:
    with opened(SinkTracks, {}, folder=tmp_path) as sink:
        feed(sink, some(1))
        (tmp_path / "tracks" / "cam.jsonl.part").unlink()
        feed(sink, some(2), end=True)
        assert sink.context.counts["dropped.file_gone", "cam"] == 2


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("moved", [True, False])
def test_when_its_folder_goes_a_new_file_begins_at_once(tmp_path: Path, form: str, moved: bool) -> None:
    with opened(SinkTracks, {"format": form}, folder=tmp_path) as sink:
        feed(sink, some(*range(4)))
        if moved:
            (tmp_path / "tracks").rename(tmp_path / "old")
        else:
            shutil.rmtree(tmp_path / "tracks")
        feed(sink, some(*range(4, 15)))
        assert 4 <= sink.context.counts["dropped.file_gone", "cam"] <= 15, "no more than those of a second"
        assert "was taken away while it was written" in sink.context.troubles["cam"]
        feed(sink, some(*range(15, 40)))
        assert sink.context.troubles == {}
        feed(sink, (), end=True)
        lost = sink.context.counts["dropped.file_gone", "cam"]
    assert seqs(tmp_path, form) == expected(form, range(lost, 40))
    assert (tmp_path / "old").exists() is moved


def test_frames_wait_for_a_folder_that_is_not_made(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with opened(SinkTracks, {"path": f"{folder}/{{camera}}.jsonl"}, folder=tmp_path) as sink:
        feed(sink, some(0, 1))
        shutil.rmtree(folder)
        with pytest.raises(EnvironmentProblem, match="no such folder"):
            feed(sink, some(20))
        folder.mkdir()
        feed(sink, some(20, 21), end=True)
    assert rows_of(folder / "cam.jsonl", "jsonl") == [20, 21]


@pytest.mark.parametrize("form", FORMATS)
def test_while_the_disk_is_full_frames_wait(small_disk: Path, tmp_path: Path, form: str) -> None:
    ballast, folder = small_disk / "ballast", small_disk / "tracks"
    folder.mkdir()
    with opened(SinkTracks, {"path": f"{folder}/{{camera}}{SUFFIX[form]}"}, folder=tmp_path) as sink:
        feed(sink, some(1, 2))
        free = os.statvfs(small_disk)
        ballast.write_bytes(bytes((free.f_bavail - 1) * free.f_frsize))
        waiting = next(seq for seq in range(3, 400) if not taken(sink, seq))
        assert not taken(sink, waiting)
        ballast.unlink()
        feed(sink, some(*range(waiting, waiting + 10)))
    assert seqs(small_disk, form) == expected(form, range(1, waiting + 10))


def taken(sink: SinkTracks, seq: int) -> bool:
    try:
        sink.process(some(seq))
    except EnvironmentProblem as problem:
        if "No space left on device" not in str(problem):
            raise
        return False
    return True


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"path": "t.csv"}, "t.csv: its end names no format; expected .txt, .jsonl, or `format` beside it"),
        ({"path": "{camera}.txt", "format": "jsonl"}, "its end says mot, and `format` says jsonl: change one of them"),
        ({"path": "{camera}", "format": "mot"}, "{camera}: has no end such as .txt; add one"),
        ({"path": "{cam}.txt"}, "there is no {cam}: expected {camera}, {run}, {date}, {time}; did you mean `camera`?"),
        ({"format": "csv"}, "Input should be 'mot' or 'jsonl'"),
    ],
)
def test_mistakes_in_settings(given: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match="validation error") as caught:
        SinkTracksSettings.model_validate(given)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "tracks/{camera}.jsonl"),
        ({"format": "mot"}, "tracks/{camera}.txt"),
        ({"path": "x/{camera}.txt"}, "x/{camera}.txt"),
        ({"path": "{camera}.csv", "format": "mot"}, "{camera}.csv"),
    ],
)
def test_path_and_format_follow_from_each_other(given: dict[str, str], path: str) -> None:
    assert SinkTracksSettings.model_validate(given).template == path


GRAPH = """
version: 1
name: tracks{pid}
processes: {processes}
cameras: {{a: {{frames: 60}}, b: {{frames: 30}}}}
stages:
  src: {{use: count_source}}
  people: {{use: stands, from: src}}
  keep: {{use: sink_tracks, from: people, batch: {{max: {batch}}}, with: {{path: "{path}"}}}}
"""


def graph(folder: Path, path: str, *, processes: str = "separate", batch: int = 1) -> Path:
    file = folder / "graph.yaml"
    file.write_text(GRAPH.format(pid=os.getpid(), processes=processes, batch=batch, path=path))
    return file


def test_two_cameras_cannot_share_a_file(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"tracks.txt: without \{camera\} all 2 cameras .*: tracks.\{camera\}.txt"):
        load_plan(graph(tmp_path, "tracks.txt"))


def test_files_are_the_same_however_the_graph_is_placed(tmp_path: Path) -> None:
    made = []
    for processes, batch in (("one", 1), ("compact", 8), ("separate", 3)):
        folder = tmp_path / processes
        folder.mkdir()
        outcome, _ = run_graph(load_plan(graph(folder, "{camera}.jsonl", processes=processes, batch=batch)))
        assert (outcome.status, outcome.problems) == (0, [])
        made.append({path.name: path.read_bytes() for path in folder.glob("*.jsonl*")})
    assert made[0] == made[1] == made[2]
    assert {name: data.count(b"\n") for name, data in made[0].items()} == {"a.jsonl": 60, "b.jsonl": 30}


def test_a_killed_process_costs_and_doubles_no_frame(tmp_path: Path) -> None:
    hits: list[int] = []
    path = graph(tmp_path, "{camera}.txt")
    path.write_text(path.read_text().replace("frames: 60", "frames: 60, pace_ms: 20"))

    def kill(supervisor: Supervisor) -> None:
        for process in supervisor.processes:
            done = process.counts().get(("written", "a"), 0)
            if process.plan.name == "keep.0" and process.pid and done > 5 and not hits:
                hits.append(process.pid)
                hit(process.pid)

    outcome, _ = run_graph(load_plan(path), kill)
    assert hits
    assert (outcome.status, outcome.problems) == (0, [])
    assert rows_of(tmp_path / "a.txt", "mot") == list(range(60))
    assert not list(tmp_path.glob("*.part"))
