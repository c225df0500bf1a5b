"""The benchmark of live cameras: its arithmetic, on figures made by hand. The run itself is `make bench`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.tools.lab.benchmarks.live import Camera, Subject, fair_rates, read_begun, report, row_of

CAMERAS = st.dictionaries(
    st.sampled_from("abcdef"), st.builds(Camera, st.floats(0.1, 60), st.integers(1, 100)), min_size=1
)


def test_fair_rates_share_the_rest_by_priority() -> None:
    cameras = {"slow": Camera(2), "a": Camera(30), "b": Camera(30, 3), "c": Camera(30)}
    assert fair_rates(cameras, 32, 50) == {"slow": 2, "a": 6, "b": 18, "c": 6}
    assert fair_rates(cameras, 32, 10) == {"slow": 2, "b": 10, "a": 10, "c": 10}


@given(CAMERAS, st.floats(1, 300))
def test_fair_rates_are_max_min_fair(cameras: dict[str, Camera], rate: float) -> None:
    rates = fair_rates(cameras, rate, 1000)
    assert sum(rates.values()) == pytest.approx(min(rate, sum(camera.fps for camera in cameras.values())))
    level = max(rates[name] / camera.priority for name, camera in cameras.items())
    for name, camera in cameras.items():
        hungry = rates[name] < camera.fps * (1 - 1e-9)
        assert not hungry or rates[name] / camera.priority == pytest.approx(level)


def test_a_row_is_made_of_what_began_while_all_filmed() -> None:
    subject = Subject({"a": Camera(10), "b": Camera(10)}, 2, "separate", 3.0)
    assert subject.cost_ms(1.5) == 150
    lines = ["1000000000 a 0 0 900000000"]
    lines += [
        f"{2_000_000_000 + n * 100_000_000} {'ab'[n % 2]} 0 {n} {1_950_000_000 + n * 100_000_000}" for n in range(20)
    ]
    lines += ["4500000000 a 0 99 1500000000"]
    counted = {"drops_by_reason": {"queue_full": 3}, "frames": 30}
    status = {"stages": {"prepare": {"latency_ms_p99": 4.0}}, "cameras": {"a": counted, "b": counted}}
    row = row_of(subject, 1.5, read_begun("\n".join(lines)), status)
    assert row.ages_ms == [50.0] * 20
    assert row.bound_ms == {"a": 274.0, "b": 274.0}
    assert (row.late, row.inferred_fps) == (0.0, 10.0)
    assert row.shares == {"a": 1.0, "b": 1.0}
    assert "| 150% | 150 ms | 10.0 | 50, 50, 50 | 274 | 0.0% | 1.00, 1.00 | queue_full 6 of 60 | 0.00 |" in report(
        subject, [row]
    )
