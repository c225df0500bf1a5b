"""The last seconds of somebody, in arrays."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.keypoint_record import KeypointRecord


@given(st.lists(st.integers(1, 400), max_size=60), st.integers(1, 3000))
def test_it_holds_the_rows_of_the_window(steps_ns: list[int], window_ns: int) -> None:
    """Against a plain list; with as many parts as nanoseconds, so that none is thinned out."""
    record, plain, now_ns = KeypointRecord(window_ns, 2, parts=3000), [], 0
    for step_ns in steps_ns:
        now_ns += step_ns
        row = (now_ns, [now_ns % 7] * 4, now_ns % 3, [[now_ns % 11] * 3] * 2)
        record.add(*row)
        plain = [one for one in [*plain, row] if one[0] >= now_ns - window_ns]
        assert record.times_ns.tolist() == [one[0] for one in plain]
        assert record.boxes.tolist() == [one[1] for one in plain]
        assert record.scores.tolist() == [one[2] for one in plain]
        assert record.joints.tolist() == [one[3] for one in plain]


@given(st.integers(1, 50), st.integers(2, 20))
def test_many_frames_are_thinned_evenly(step_ns: int, parts: int) -> None:
    record = KeypointRecord(1000, 1, parts=parts)
    for now_ns in range(0, 5000, step_ns):
        record.add(now_ns, np.zeros(4), 0, np.zeros((1, 3)))
        assert len(record) <= parts + 2
        assert record.times_ns[-1] == now_ns
        apart = np.diff(record.times_ns)
        assert (apart > 0).all()
        assert apart.max(initial=0) <= max(step_ns, 1000 // parts + step_ns)


def test_rows_cannot_be_changed() -> None:
    record = KeypointRecord(1000, 1)
    record.add(0, [0, 0, 1, 1], 1.0, [[1, 2, 3]])
    assert not any(rows.flags.writeable for rows in (record.times_ns, record.boxes, record.scores, record.joints))
    record.add(1, [0, 0, 1, 1], 1.0, [[1, 2, 3]])
    assert len(record) == 2
