"""The guarantees on the pulled clip and the real model, in small; `tools.lab.proofs.prove` is the large version."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from camgraph.tools.assets import asset_path
from camgraph.tools.lab import file_runs
from camgraph.tools.lab.file_runs import Killing, Ran, Way, run_name, run_way
from camgraph.tools.measuring.processes import left_over

SECONDS = 2.0
WAY = Way(size=(320, 256))
"""Less than half of the usual pixels: most of the time of a run is that of the model."""
KILLED = replace(WAY, threads=2, batch=3, throttled=True)
STATELESS = ("capture.north", "capture.east", "capture.south", "prepare.0", "infer.0", "people.0", "outbox.0", "log.0")
ASSETS = ("vtest.avi", "movenet-multipose.onnx")

pytestmark = pytest.mark.skipif(
    not all(asset_path(name).exists() for name in ASSETS), reason="assets are not pulled: camgraph assets pull"
)


@pytest.fixture(scope="module")
def reference() -> Ran:
    """The graph in one process, one frame after the other."""
    return run_way(replace(WAY, processes="one"), SECONDS)


def test_reference_has_people_and_all_frames(reference: Ran) -> None:
    assert reference.status == 0
    assert reference.frames == file_runs.frames_by_pyav(SECONDS) == dict.fromkeys(file_runs.STARTS_S, 20)
    events = [json.loads(line) for line in reference.events.splitlines()]
    assert len(events) > 60
    assert {event["data"]["camera"] for event in events} == set(file_runs.STARTS_S)
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)


@pytest.mark.parametrize(
    "way",
    [
        {},
        {"workers": 2, "threads": 2, "batch": 3},
        {"threads": 2, "batch": 8, "throttled": True},
        {"processes": "compact", "threads": 2, "batch": 3, "throttled": True},
        {"processes": "compact", "workers": 2, "batch": 8},
    ],
    ids=str,
)
def test_files_are_exact_however_the_graph_is_run(reference: Ran, way: dict[str, Any]) -> None:
    ran = run_way(replace(WAY, **way), SECONDS)
    assert (ran.status, ran.problems, ran.drops) == (0, [], 0)
    assert ran.frames == reference.frames
    assert ran.inferred == sum(ran.frames.values())
    assert ran.events == reference.events
    assert left_over(run_name()) == []


@pytest.mark.parametrize(
    "processes", [("capture.north", "people.0"), ("prepare.0", "outbox.0"), ("infer.0", "log.0")], ids=str
)
def test_any_stateless_process_may_die(reference: Ran, processes: tuple[str, str]) -> None:
    """The second when the first is back: that one is nearer to the source, so that frames are left for the second."""
    killing = Killing(processes, 12)
    ran = run_way(KILLED, SECONDS, killing)
    assert list(killing.recovery_s) == list(processes)
    assert (ran.status, ran.problems) == (0, [])
    assert ran.events == reference.events
    assert left_over(run_name()) == []


@pytest.mark.parametrize("processes", [("infer.0", "people.0"), STATELESS], ids=len)
def test_several_stateless_processes_may_die_at_once(reference: Ran, processes: tuple[str, ...]) -> None:
    """Also all of them: the sender of a frame is dead as well as its reader."""
    killing = Killing([processes], 12)
    ran = run_way(KILLED, SECONDS, killing)
    assert set(killing.recovery_s) == set(processes)
    assert (ran.status, ran.problems) == (0, [])
    assert ran.events == reference.events
    assert left_over(run_name()) == []


@pytest.mark.parametrize(("process", "stage"), [("tracks.0", "tracks"), ("actions.0", "actions")])
def test_what_a_stage_with_a_memory_lost_is_said(process: str, stage: str) -> None:
    killing = Killing([process], 12)
    ran = run_way(KILLED, SECONDS, killing)
    assert list(killing.recovery_s) == [process]
    assert ran.status == 1
    assert ran.problems == [f"{stage} lost its state (signal 9) and began anew"]
    events = [json.loads(line) for line in ran.events.splitlines()]
    ids = [event["id"] for event in events]
    assert len(ids) == len(set(ids))
    reported = [event["data"] for event in events if event["type"].startswith("camgraph.incident.")]
    begun = {data["incident"] for data in reported if data["phase"] == "start"}
    ended = {data["incident"] for data in reported if data["phase"] == "end"}
    assert begun
    assert begun <= ended, "whatever began has an end"
    assert left_over(run_name()) == []


def test_death_of_supervisor_leaves_nothing() -> None:
    killed = file_runs.kill_supervisor(SECONDS + 2, replace(WAY, threads=2))
    assert killed.left == []
    assert killed.clean_s < 30
    assert killed.kept
    assert killed.status == 0
