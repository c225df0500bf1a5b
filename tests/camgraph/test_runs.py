"""Runs from Python: what comes, in which ways, and how they end. Each test also looks for what is left."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from camgraph_test_stages.programs import BOUND_S, children_of
from camgraph_test_stages.waiting import until

import camgraph
import camgraph.pipeline.local
from camgraph.background import Background
from camgraph.pipeline.supervision.fleet import CLOSE_S
from camgraph.pipeline.testing import hit

Graphs = Callable[..., Path]


def seqs(events: list[camgraph.Event], camera: str = "a") -> list[int]:
    return [event.json()["seq"] for event in events if event.camera == camera]


def test_close_is_described_with_the_time_after_which_it_kills() -> None:
    page = Path(camgraph.__file__).resolve().parents[2] / "docs" / "python.md"
    [row] = [line for line in page.read_text().splitlines() if line.startswith("| `run.close(")]
    assert camgraph.Run.close.__doc__ is not None
    for text in (row, camgraph.Run.close.__doc__):
        assert f" {CLOSE_S:g} s later it kills" in text


# ---- what comes


@pytest.mark.parametrize("in_process", [False, True])
def test_events_come_as_the_sinks_of_the_graph_get_them(seeing: Graphs, in_process: bool) -> None:
    path = seeing()
    run = camgraph.run(path, in_process=in_process)
    events = list(run)
    lines = (path.parent / "events.jsonl").read_bytes().splitlines()
    assert [event.raw for event in events] == lines
    start = events[0]
    assert (start.kind, start.phase, start.action, start.camera) == ("incident", "start", "somebody", "door")
    assert start.incident().data.rule.id == start.rule == "somebody"
    assert len(start.people) == 1
    assert start.people[0].keypoints.shape == (17, 3)
    assert run.result is not None
    assert (run.result.status, run.result.problems, run.result.unread) == (0, (), 0)
    assert run.result.last.cameras["door"].frames == 40


def test_every_frame_of_a_file_comes_with_its_people(seeing: Graphs, clip: Path) -> None:
    run = camgraph.run(seeing(f"a: {{url: {clip}}}, b: {{url: {clip}}}"))
    frames = list(run.tracks())
    for camera in "ab":
        own = [frame for frame in frames if frame.camera == camera]
        assert [frame.seq for frame in own] == list(range(40))
        assert [frame.time_s for frame in own] == pytest.approx(np.arange(40) / 10)
        assert {len(frame.ids) for frame in own[5:]} == {2}  # once the tracker believes in them
        assert {frame.skipped for frame in own} == {0}
    last = frames[-1]
    assert (last.width, last.height, last.skeleton, last.wall_time) == (96, 64, "coco-17", None)
    assert (last.boxes.shape, last.scores.shape, last.keypoints.shape) == ((2, 4), (2,), (2, 17, 3))
    one = last.people[0]
    assert one.id == last.ids[0]
    assert one.box == pytest.approx(last.boxes[0])
    assert one.keypoints.base is not None
    # The model's box 16 x 40 around (30, 32) in 64 x 64, of a frame of 96 x 64 that lies in it at two thirds.
    assert sorted(person.box[0] for person in last.people)[0] == pytest.approx((30 - 8) * 1.5, abs=2)


def test_pictures_come_annotated_or_as_they_are(seeing: Graphs) -> None:
    path = seeing()
    with camgraph.run(path) as run:
        drawn = next(run.frames())
    with camgraph.run(path) as run:
        plain = next(run.frames(annotated=False, max_width=48))
    assert (drawn.pixels.shape, drawn.pixels.dtype, drawn.scale) == ((64, 96, 3), np.uint8, 1.0)
    assert (plain.pixels.shape, plain.scale) == ((32, 48, 3), 0.5)
    assert np.ptp(plain.pixels) < 20
    assert np.ptp(drawn.pixels) > 100
    drawn.pixels[:] = 0  # it is one's own


def test_several_kinds_come_in_one_loop(seeing: Graphs) -> None:
    kinds = [type(item).__name__ for item in camgraph.run(seeing()).items(events=True, tracks=True, frames=True)]
    assert kinds.count("TrackedFrame") == kinds.count("Picture") == 40
    assert kinds.count("Event") == 4


def test_a_graph_needs_no_sink_for_what_a_program_reads(counting: Graphs) -> None:
    assert seqs(list(camgraph.run(counting(5)))) == [0, 1, 2, 3, 4]


def test_a_kind_that_the_graph_does_not_make_is_refused(counting: Graphs) -> None:
    with pytest.raises(camgraph.UserError, match="no stage of this graph makes tracks"):
        next(camgraph.run(counting()).tracks())


def test_a_kind_that_is_asked_for_too_late_is_refused(counting: Graphs) -> None:
    with camgraph.run(counting()) as run:
        next(run.events())
        with pytest.raises(camgraph.UserError, match=r"call `tracks\(\)` before you ask for its first item"):
            run.tracks()


# ---- what is delivered


def test_unread_events_come_first_in_next_run(counting: Graphs) -> None:
    path = counting(4)
    for event in camgraph.run(path):
        assert event.json()["seq"] == 0
        break
    again = list(camgraph.run(path))
    assert again[0].earlier_run
    assert again[0].json()["seq"] == 0
    assert seqs([event for event in again if not event.earlier_run]) == [0, 1, 2, 3]


def test_what_was_not_read_when_a_run_is_closed_is_dropped(counting: Graphs) -> None:
    path = counting(400)
    with camgraph.run(path) as run:
        next(run.events())
    assert run.result is not None
    assert run.result.unread > 0
    events = list(camgraph.run(path))
    assert not any(event.earlier_run for event in events)
    assert seqs(events) == list(range(400))


def test_an_event_in_hand_when_the_loop_raises_comes_again(counting: Graphs) -> None:
    path = counting(6)

    def fail_at_the_third() -> None:
        with camgraph.run(path) as run:
            for number, _ in enumerate(run):
                if number == 2:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_at_the_third()
    left = [event for event in camgraph.run(path) if event.earlier_run]
    assert seqs(left)[0] == 2


def test_a_killed_process_loses_no_event_and_repeats_none(counting: Graphs, name: str) -> None:
    path = counting(cameras="a: {frames: 60, pace_ms: 50}, b: {frames: 60, pace_ms: 50}")
    run = camgraph.run(path)
    events = []
    for event in run:
        events.append(event)
        if len(events) in (20, 50, 80):
            victims = ["python_events.0", "outbox.0", "python_events.0"]
            hit(children_of(os.getpid())[victims[(len(events) - 20) // 30]])
    assert seqs(events, "a") == seqs(events, "b") == list(range(60))
    assert run.result is not None
    assert run.result.last.stages["python_events"].restarts == 2


def test_a_graph_of_files_waits_for_its_reader_without_limit(seeing: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(camgraph.pipeline.local, "BLOCKED_LIMIT_S", 0.3)
    held_for = threading.Event()
    run = camgraph.run(seeing(), in_process=True)
    frames = run.frames()
    first = next(frames)
    assert not held_for.wait(2.0)  # far longer than the limit
    assert run.status().troubles == ()
    assert [first.seq, *(frame.seq for frame in frames)] == list(range(40))


# ---- how it is used


def test_two_runs_at_once_in_threads(counting: Graphs, name: str) -> None:
    found: dict[str, list[int]] = {}

    def read(called: str) -> None:
        found[called] = seqs(list(camgraph.run(counting(50, called=called))))

    threads = [threading.Thread(target=read, args=(f"{name}-{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND_S)
    assert list(found.values()) == [list(range(50))] * 2


def test_the_same_name_twice_is_refused_as_by_the_command(counting: Graphs, name: str) -> None:
    path = counting(cameras="a: {frames: 100000, pace_ms: 50}")
    with camgraph.run(path) as run:
        next(run.events())
        with pytest.raises(camgraph.UserError, match=f"a run called {name} is going on"):
            camgraph.run(path).start()
    assert seqs(list(camgraph.run(counting(3)))) == [0, 1, 2]


def test_it_runs_within_asyncio(counting: Graphs) -> None:
    async def read() -> tuple[list[int], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        async with camgraph.run(counting(cameras="a: {frames: 30, pace_ms: 20}")) as run:
            got = [event async for event in run]
        ticking.cancel()
        return seqs(got), ticks

    got, ticks = asyncio.run(read())
    assert got == list(range(30))
    assert ticks > 10


def test_a_task_that_is_cancelled_loses_no_event(counting: Graphs) -> None:
    path = counting(cameras="a: {frames: 12, pace_ms: 100}")

    async def read() -> list[int]:
        got = []
        async with camgraph.run(path) as run:
            events = run.events()
            while True:
                try:
                    got.append(await asyncio.wait_for(anext(events), 0.03))
                except TimeoutError:
                    continue
                except StopAsyncIteration:
                    return seqs(got)

    assert asyncio.run(read()) == list(range(12))


def test_callbacks_are_called_in_the_background(seeing: Graphs) -> None:
    events: list[camgraph.Event] = []
    frames: list[camgraph.TrackedFrame] = []
    run = camgraph.run(seeing(), on_event=events.append, on_tracks=frames.append).start()
    result = run.wait(BOUND_S)
    assert result is not None
    assert result.status == 0
    assert (len(events), [frame.seq for frame in frames]) == (4, list(range(40)))


def test_a_callback_that_raises_stops_the_run(counting: Graphs) -> None:
    def fail(event: camgraph.Event) -> None:
        raise ZeroDivisionError(event.id)

    run = camgraph.run(counting(cameras="a: {frames: 100000, pace_ms: 50}"), on_event=fail).start()
    with pytest.raises(ZeroDivisionError):
        run.wait(BOUND_S)


def test_the_status_of_a_run_that_goes_on_and_a_stop(counting: Graphs) -> None:
    run = camgraph.run(counting(cameras="a: {frames: 100000, pace_ms: 50}"))
    assert run.status().phase == "starting"
    events = run.events()
    got = [next(events)]
    until(lambda: run.status().phase == "running")
    assert run.result is None
    assert run.wait(0.1) is None
    run.stop()
    got += events
    assert seqs(got) == list(range(len(got)))
    assert run.result is not None
    assert run.result.status == 0
    assert run.status().phase == "over"


def test_close_is_bounded_while_nobody_reads(counting: Graphs) -> None:
    run = camgraph.run(counting(cameras="a: {frames: 100000}"))
    next(run.events())
    run.close(within_s=5.0)
    assert run.result is not None
    run.close()


def test_a_stop_before_the_beginning_is_not_forgotten(counting: Graphs) -> None:
    run = camgraph.run(counting(cameras="a: {frames: 100000, pace_ms: 50}"))
    run.stop()
    assert len(list(run)) < 50
    assert run.result is not None
    assert run.result.status == 0


def test_a_run_that_is_closed_does_not_begin(counting: Graphs) -> None:
    run = camgraph.run(counting(1))
    run.close()
    with pytest.raises(camgraph.UserError, match="is closed"):
        next(run.events())


def test_a_close_while_another_thread_starts_is_not_lost(counting: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    starting, go_on = threading.Event(), threading.Event()
    start = Background.start

    def slow_start(background: Background) -> None:
        starting.set()
        assert go_on.wait(60)
        start(background)

    monkeypatch.setattr(Background, "start", slow_start)
    run = camgraph.run(counting(cameras="a: {frames: 100000, pace_ms: 50}"))
    run.events()
    threads = [threading.Thread(target=run.start), threading.Thread(target=run.close)]
    threads[0].start()
    assert starting.wait(60)
    threads[1].start()
    until(lambda: run._closed)
    go_on.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert run.result is not None


def test_a_signal_handler_may_close_a_run_that_starts(counting: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Background.start
    run = camgraph.run(counting(cameras="a: {frames: 100000, pace_ms: 50}"))

    def interrupted(background: Background) -> None:
        run.close()
        start(background)

    monkeypatch.setattr(Background, "start", interrupted)
    run.start()
    assert run.wait(60) is not None


def test_pictures_cannot_change_once_a_run_has_started(seeing: Graphs) -> None:
    with camgraph.run(seeing()) as run:
        next(run.frames(max_width=64))
        run.frames(max_width=64)
        with pytest.raises(camgraph.UserError, match="before start"):
            run.frames(annotated=False, max_width=64)


def test_a_run_that_is_forgotten_ends(counting: Graphs) -> None:
    run = camgraph.run(counting(cameras="a: {frames: 100000, pace_ms: 50}")).start()
    until(lambda: children_of(os.getpid()))
    del run  # `nothing_stays` looks


def test_failure_is_raised_at_the_end(counting: Graphs) -> None:
    path = counting(cameras="a: {frames: 3}, b: {frames: 3, fail: its cable is gone}")
    run = camgraph.run(path)
    events = []
    with pytest.raises(camgraph.CamgraphError, match="camera b: its cable is gone") as raised:
        events.extend(run)
    assert isinstance(raised.value, camgraph.GaveUp)
    assert run.result is not None
    assert run.result.status == 1


def test_mistakes_of_a_graph_are_those_that_the_command_prints(counting: Graphs) -> None:
    path = counting(head="  more: {use: emitt, from: srcc}\nhang: 3\n")
    printed = subprocess.run(
        [sys.executable, "-m", "camgraph", "check", str(path)], capture_output=True, text=True, check=False
    )
    with pytest.raises(camgraph.GraphError) as raised:
        camgraph.run(path)
    assert printed.returncode == raised.value.exit_status == 2
    lines = [line for line in printed.stderr.splitlines() if line.startswith(str(path))]
    mine = [line for line in lines if "no stage reads" not in line]
    assert [line.strip() for line in str(raised.value).splitlines()] == mine
    assert {problem.line for problem in raised.value.problems} == {8, 9}


def test_two_iterators_in_one_thread_are_told_of(
    seeing: Graphs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("camgraph.inbox._UNREAD_S", 0.1)
    monkeypatch.setattr("camgraph.runs._LOOK_S", 0.2)
    run = camgraph.run(seeing())
    frames, events = run.frames(), run.events()
    reader = threading.Thread(target=lambda: list(events), daemon=True)
    with caplog.at_level(logging.WARNING, "camgraph"):
        reader.start()
        until(lambda: "nobody reads frames()" in caplog.text)
    list(frames)
    reader.join(BOUND_S)
    assert not reader.is_alive()


def test_a_watched_clip_needs_no_name_and_leaves_nothing(clip: Path, two_people: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("version: 1\nrules:\n  - {id: somebody, when: age >= 0.2s}\n")
    graph = camgraph.build(clip, model=two_people, rules=rules)
    assert "sink_jsonl" not in graph.text
    runs = [camgraph.run(graph) for _ in range(2)]
    events = [run.events() for run in runs]
    assert [next(one).action for one in events] == ["somebody"] * 2
    assert len({run.name for run in runs}) == 2
    del runs, events
    assert not any(event.earlier_run for event in camgraph.watch(clip, model=two_people, rules=rules))


def test_an_address_in_place_of_a_path_shows_no_password(clip: Path) -> None:
    address = "http://viewer:geheim@127.0.0.1/x.yaml"
    calls: list[Callable[[], object]] = [
        lambda: camgraph.watch(clip, rules=address),
        lambda: camgraph.watch(clip, events=address),
        lambda: camgraph.watch(clip, env_files=[address]),
        lambda: camgraph.run(address),
        lambda: camgraph.load(address),
        lambda: camgraph.parse("version: 1", folder=address),
    ]
    for call in calls:
        with pytest.raises(camgraph.UserError, match=r"http://\*\*\*@127.0.0.1/x.yaml: is an address"):
            call()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"size": "x"}, "size: expected a whole number of pixels from 32 to 8192, got 'x'"),
    ({"size": 5}, "size: expected a whole number of pixels from 32 to 8192, got 5"),
    ({"max_fps": 0}, "max_fps: expected a number of frames a second above 0, of at most 1000, got 0"),
    ({"max_fps": math.nan}, "max_fps: expected a number of frames a second above 0, of at most 1000, got nan"),
    ({"rules": 3}, "rules: expected a path as str or pathlib.Path, got 3"),
    ({"env_files": "x.env"}, "env_files: expected a list of paths, got 'x.env'"),
    ({"name": "a b"}, "name: expected a name of letters, digits"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_a_wrong_value_is_told_with_its_argument(clip: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(camgraph.UserError) as caught:
        camgraph.watch(clip, **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_width": "x"}, "max_width: expected a whole number, got 'x'"),
        ({"max_width": -1}, "max_width: expected 16 or more, got -1"),
        ({"trail_s": math.nan}, "trail_s: expected "),
    ],
)
def test_a_wrong_wish_for_pictures_is_told_at_once(seeing: Graphs, options: dict[str, Any], message: str) -> None:
    with camgraph.run(seeing()) as run, pytest.raises(camgraph.UserError, match=f"^{message}"):
        run.frames(**options)


def test_values_of_other_types_are_the_users_mistakes() -> None:
    anything: Any = None
    with pytest.raises(camgraph.UserError, match=r"text: expected the text of a graph .*, got None"):
        camgraph.parse(anything)
    for call in (camgraph.load, camgraph.run, camgraph.watch):
        with pytest.raises(camgraph.UserError, match=r"expected a path as str or pathlib\.Path, got None"):
            call(anything)


@pytest.mark.parametrize("address", ["rtsp://viewer:${NO_SUCH}@127.0.0.1:9/main", "rtsp://${NO_SUCH}/main"])
def test_a_missing_variable_of_a_source_names_no_line(address: str) -> None:
    with pytest.raises(camgraph.UserError, match=r"^rtsp://.*: the environment variable NO_SUCH is not set"):
        camgraph.watch(address)


def test_nothing_to_watch_is_refused() -> None:
    with pytest.raises(camgraph.UserError, match="no source: expected a video"):
        camgraph.watch()


def test_a_changed_graph_file_is_taken_over(counting: Graphs, name: str) -> None:
    path = counting(cameras="a: {frames: 100000, pace_ms: 50}")
    with camgraph.run(path) as run:
        events = run.events()
        next(events)
        until(lambda: run.status().phase == "running")
        counting(cameras="a: {frames: 100000, pace_ms: 50}, b: {frames: 3}")
        done = subprocess.run(
            [sys.executable, "-m", "camgraph", "reload", "--name", name], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert next(event for event in events if event.camera == "b").json()["seq"] == 0
        assert json.loads(next(events).raw)["camera"] in "ab"
