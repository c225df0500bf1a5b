"""Cameras come and go: nobody moves without need, and every message still finds its reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from camgraph.pipeline.graph import parse_graph, plan_of
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.supervision.revision import with_cameras

GRAPH = """
version: 1
processes: {processes}
cameras: {cameras}
stages:
  count: {{use: count_source{dealt}}}
  thin: {{use: thin, from: count, workers: {workers}}}
  sum: {{use: running_sum, from: thin, workers: {workers}}}
  both: {{use: pair, from: {{left: count, right: thin}}}}
  actions: {{use: emit, from: sum}}
  log: {{use: collect_events, from: actions, with: {{path: x}}}}
  end: {{use: collect, from: both, with: {{path: y}}}}
"""


def plan_with(
    folder: Path, cameras: Sequence[str], *, workers: int = 1, each: int = 0, processes: str = "separate"
) -> RunPlan:
    dealt = f", cameras_per_process: {each}" if each else ""
    names = yaml.safe_dump(bare(cameras), default_flow_style=True).strip()
    text = GRAPH.format(processes=processes, cameras=names, dealt=dealt, workers=workers)
    return plan_of(parse_graph(text, "g.yaml", base_folder=folder, environ={}))


def bare(cameras: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The settings of cameras that need none."""
    return {camera: {} for camera in cameras}


def homes(plan: RunPlan) -> dict[str, str]:
    """Unit -> its cameras, in short."""
    return {process.name: "".join(process.cameras) for process in plan.processes}


def test_a_camera_comes(tmp_path: Path) -> None:
    before = plan_with(tmp_path, "ab", workers=2)
    after = with_cameras(before, bare("abc"), ())
    old = {process.name: process for process in before.processes}
    assert [process.name for process in after.processes if process.name not in old] == ["count.c"]
    assert not old.keys() - {process.name for process in after.processes}
    others = {process.name for process in after.processes if process.name in old and process != old[process.name]}
    assert others == {"thin.0", "thin.1", "sum.0", "both.0", "actions.0", "outbox.0", "log.0", "end.0"}
    assert homes(after)["thin.0"] == "ac"
    assert homes(after)["thin.1"] == "b"


def test_a_camera_goes_and_the_next_one_takes_its_place(tmp_path: Path) -> None:
    before = plan_with(tmp_path, "abcd", workers=2)
    less = with_cameras(before, bare("bcd"), ())
    assert set(homes(before)) - set(homes(less)) == {"count.a"}
    assert (homes(less)["thin.0"], homes(less)["thin.1"]) == ("c", "bd")
    again = with_cameras(less, bare("bcde"), ())
    assert (homes(again)["thin.0"], homes(again)["thin.1"]) == ("ce", "bd")


def test_cameras_share_processes_up_to_the_limit(tmp_path: Path) -> None:
    plan = plan_with(tmp_path, "abcde", each=2)
    assert [homes(plan)[f"count.{n}"] for n in range(3)] == ["ad", "be", "c"]
    plan = with_cameras(plan, bare("abcdef"), ())
    assert homes(plan)["count.2"] == "cf"
    plan = with_cameras(plan, bare("abcdefg"), ())
    assert homes(plan)["count.3"] == "g"
    plan = with_cameras(plan, bare("abcdef"), ())
    assert "count.3" not in homes(plan)


def test_more_workers_begin_where_there_are_more_cameras(tmp_path: Path) -> None:
    before = plan_with(tmp_path, "a", workers=2)
    assert "thin.1" not in homes(before)
    after = with_cameras(before, bare("ab"), ())
    assert homes(after)["thin.1"] == "b"


def test_nothing_changes_where_nothing_is_changed(tmp_path: Path) -> None:
    plan = plan_with(tmp_path, "abc", workers=2)
    assert with_cameras(plan, plan.camera_settings, plan.live_cameras) == plan


def test_a_camera_that_comes_brings_its_priority(tmp_path: Path) -> None:
    after = with_cameras(plan_with(tmp_path, "a"), {"a": {}, "b": {"priority": 4}}, ())
    assert {process.name: dict(process.priorities) for process in after.processes}["sum.0"] == {"b": 4}


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_message_finds_its_reader_and_nobody_moves(tmp_path: Path, data: st.DataObject) -> None:
    some = st.sets(st.sampled_from("abcdefgh"), min_size=1).map(sorted)
    processes = data.draw(st.sampled_from(["separate", "compact"]))
    plan = plan_with(
        tmp_path,
        data.draw(some),
        workers=data.draw(st.integers(1, 3)),
        each=data.draw(st.integers(0, 3)),
        processes=processes,
    )
    for cameras in data.draw(st.lists(some, max_size=5)):
        after = with_cameras(plan, bare(cameras), ())
        _is_whole(after, cameras)
        _nobody_moved(plan, after, set(cameras))
        plan = after


def _is_whole(plan: RunPlan, cameras: Sequence[str]) -> None:
    processes = {process.name: process for process in plan.processes}
    places = [
        (stage.name, camera) for process in plan.processes for stage in process.stages for camera in process.cameras
    ]
    stages = {stage.name for process in plan.processes for stage in process.stages} - {"log"}
    assert sorted(places) == sorted([(s, c) for s in stages for c in cameras] + [("log", "*")])
    assert [name for group in plan.groups for name in group.processes] == list(processes)
    for group in plan.groups:
        assert all(len(processes[name].cameras) <= group.cameras for name in group.processes if group.cameras)
        assert not group.workers or len(group.processes) <= group.workers
    for process in plan.processes:
        for edge in process.outgoing:
            for camera, reader in process.routes[edge.name].items():
                assert camera in processes[reader].cameras
                assert process.name in processes[reader].senders[edge.name]
            assert edge.sender == "outbox" or set(process.routes[edge.name]) == set(process.cameras)


def _nobody_moved(before: RunPlan, after: RunPlan, cameras: set[str]) -> None:
    for process in before.processes:
        stayed = [camera for camera in process.cameras if camera in cameras]
        if stayed:
            assert set(stayed) <= set(next(other.cameras for other in after.processes if other.name == process.name))
