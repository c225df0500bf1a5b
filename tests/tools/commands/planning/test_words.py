"""What a person reads."""

from __future__ import annotations

from dataclasses import replace

from camgraph.tools.commands.planning.arithmetic import Costs, Machine, StageTime, fps_that_fits, most_cameras, need_of
from camgraph.tools.commands.planning.plan import Planned
from camgraph.tools.commands.planning.words import in_words

COSTS = Costs(
    read_fps=10,
    reading_s=0.004,
    after_s={"infer": 0.024, "tracks": 0.002},
    fixed_cores={"infer": 0.08, "supervisor": 0.02},
    stages={"infer": StageTime(0.010, 2)},
    camera_bytes=60e6,
    fixed_bytes=840e6,
    camera_shared_bytes=30e6,
)
ROOMY = Machine(2, 8e9, 4e9)


def planned(cameras: int = 4, machine: Machine = ROOMY) -> Planned:
    return Planned(
        graph="yard.yaml",
        cameras=cameras,
        machine=machine,
        costs=COSTS,
        need=need_of(COSTS, cameras),
        most=most_cameras(COSTS, machine),
        slower_fps=5,
        most_slower=most_cameras(COSTS, machine, 5),
        fitting_fps=fps_that_fits(COSTS, machine, cameras),
        tried=["a", "b"],
        absent={},
        seconds=10,
        other_cores=0,
        lost=0,
        left_out={},
    )


def test_a_graph_that_fits() -> None:
    assert list(in_words(planned()))[:4] == [
        "This graph: 4 cameras at 10 frames a second need 1.3 of 2 cores.",
        "You can have 5 such cameras; then the processor is the limit.",
        "With `max_fps: 5` you can have 10 such cameras; then the processor is the limit.",
        "Memory: 1.2 GB of 8.0 GB; /dev/shm: 120 MB of 4.0 GB.",
    ]


def test_a_graph_that_is_too_much() -> None:
    lines = list(in_words(planned(8)))
    assert lines[0] == "This graph: 8 cameras at 10 frames a second need 2.5 of 2 cores."
    assert lines[2] == "All 8 fit with `max_fps: 6.6`."


def test_one_camera_and_none() -> None:
    assert next(in_words(planned(1))).startswith("This graph: 1 camera at 10 frames a second needs ")
    small = planned(1, Machine(2, 5e8, 4e9))
    assert list(in_words(small))[1] == "You can have no such camera: the memory is the limit already."


def test_a_stage_that_ends_first() -> None:
    lines = list(in_words(planned(4, Machine(64, 64e9, 64e9))))
    assert lines[1] == "You can have 18 such cameras; then the stage `infer` is the limit."


def test_the_grounds() -> None:
    disturbed = replace(
        planned(),
        absent={"b": "no frame within 25 s (connecting)"},
        other_cores=0.7,
        lost=0.3,
        left_out={"log": "sink_jsonl", "videos": "sink_video", "clips": "sink_footage"},
    )
    text = "\n".join(in_words(disturbed))
    assert "Measured: 1 camera (a) for 10 s" in text
    assert "b brought no picture (no frame within 25 s (connecting))" in text
    assert "other programs took 0.7 cores" in text
    assert "30% of the frames were too many" in text
    assert "10% of all is left free" in text
    assert "log, videos, clips got no events" in text
    assert "videos encodes videos" in text
    assert "clips keeps the last seconds" in text
    calm = "\n".join(in_words(planned()))
    assert "other programs took" not in calm
    assert "too many" not in calm
