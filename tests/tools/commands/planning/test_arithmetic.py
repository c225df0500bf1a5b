"""The number of cameras is the largest that fits, whatever ends first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.tools.commands.planning.arithmetic import (
    CPU,
    MEMORY,
    RESERVE,
    SHARED_MEMORY,
    Costs,
    Machine,
    Need,
    StageTime,
    fps_that_fits,
    most_cameras,
    need_of,
)

COSTS = Costs(
    read_fps=10,
    reading_s=0.004,
    after_s={"infer": 0.010, "tracks": 0.002},
    fixed_cores={"infer": 0.08, "supervisor": 0.02},
    stages={"infer": StageTime(0.010, 2), "tracks": StageTime(0.002, 1)},
    camera_bytes=60e6,
    fixed_bytes=400e6,
    camera_shared_bytes=5e6,
)
ROOMY = Machine(2, 8e9, 4e9)

seconds = st.floats(1e-5, 0.1)
costs = st.builds(
    Costs,
    read_fps=st.floats(0.5, 60),
    reading_s=seconds,
    after_s=st.fixed_dictionaries({"a": seconds, "b": seconds}),
    fixed_cores=st.fixed_dictionaries({"a": st.floats(0, 0.3)}),
    stages=st.fixed_dictionaries({"a": st.builds(StageTime, seconds, st.integers(1, 8))}),
    camera_bytes=st.floats(1e6, 1e9),
    fixed_bytes=st.floats(0, 1e9),
    camera_shared_bytes=st.floats(1e5, 1e9),
)
machines = st.builds(Machine, st.integers(1, 64), st.floats(1e8, 1e11), st.floats(1e7, 1e11))


def fits(need: Need, machine: Machine) -> bool:
    left = (1 - RESERVE) * (1 + 1e-6)
    return (
        need.cores <= left * machine.cores
        and need.memory_bytes <= left * machine.memory_bytes
        and need.shared_bytes <= left * machine.shared_bytes
        and all(share <= left for share in need.stages.values())
    )


@given(costs, machines)
def test_the_most_cameras_fit_and_one_more_does_not(costs: Costs, machine: Machine) -> None:
    most = most_cameras(costs, machine)
    assert most.cameras == 0 or fits(need_of(costs, most.cameras), machine)
    assert not fits(need_of(costs, most.cameras + 1), machine)


def test_the_need_by_hand() -> None:
    need = need_of(COSTS, 4)
    assert need.cores == pytest.approx(0.1 + 4 * 10 * 0.016)
    assert need.memory_bytes == pytest.approx(400e6 + 4 * 65e6)
    assert need.shared_bytes == pytest.approx(20e6)
    assert need.stages == pytest.approx({"infer": 0.2, "tracks": 0.08})


def test_fewer_frames_make_the_reading_no_cheaper() -> None:
    assert need_of(COSTS, 4, 5).cores == pytest.approx(0.1 + 4 * (10 * 0.004 + 5 * 0.012))


@pytest.mark.parametrize(
    ("machine", "cameras", "resource"),
    [
        (ROOMY, 10, CPU),  # (1.8 - 0.1) / 0.16
        (Machine(64, 8e9, 4e9), 18, "infer"),  # 0.9 x 2 / 0.1
        (Machine(64, 1e9, 4e9), 7, MEMORY),  # (0.9 - 0.4) / 0.065
        (Machine(64, 8e9, 64e6), 11, SHARED_MEMORY),
        (Machine(2, 2e8, 4e9), 0, MEMORY),
    ],
)
def test_the_resource_that_ends_first(machine: Machine, cameras: int, resource: str) -> None:
    most = most_cameras(COSTS, machine)
    assert (most.cameras, most.resource) == (cameras, resource)


@given(costs, machines, st.integers(1, 200))
def test_the_rate_that_fits(costs: Costs, machine: Machine, cameras: int) -> None:
    fps = fps_that_fits(costs, machine, cameras)
    assert 0 <= fps <= costs.read_fps
    if fps > 0:
        assert fits(need_of(costs, cameras, fps), machine)


def test_no_rate_makes_up_for_memory() -> None:
    assert fps_that_fits(COSTS, ROOMY, 20) == pytest.approx((1.8 - 0.1 - 20 * 0.04) / (20 * 0.012))
    assert fps_that_fits(COSTS, Machine(2, 1e9, 4e9), 20) == 0
