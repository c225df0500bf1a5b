"""Times at which the frames of slow live cameras arrive: a stream, chosen from by `max_fps`, sent through a network."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from camgraph.stages.video.timeline import Selection

MS = 1_000_000
SECOND = 1_000_000_000

_RATES = st.sampled_from(
    [(5.0, 2.0), (5.0, 1.5), (5.0, 1.0), (25.0, 2.0), (12.5, 1.0), (3.0, 2.0), (2.0, None), (1.0, None)]
)
"""Frames a second that the camera sends, and `max_fps`."""


def taken(stream_fps: float, max_fps: float | None, seconds: float) -> list[int]:
    """When the camera sends the frames that are taken, in ns."""
    selection = Selection(max_fps=max_fps)
    sent = [round(index * SECOND / stream_fps) for index in range(round(seconds * stream_fps))]
    return [time_ns for time_ns in sent if selection.takes(time_ns)]


@st.composite
def slow_cameras(draw: st.DrawFn, *, seconds: float = 25.0) -> Sequence[int]:
    """Rising times in ns. Frames are late by up to 250 ms, those of the first seconds may come together, some are lost.

    Two lost frames never follow each other.
    """
    times = taken(*draw(_RATES), seconds)
    late_ms = draw(st.lists(st.integers(0, 250), min_size=len(times), max_size=len(times)))
    together_ns = round(draw(st.floats(0, 3)) * SECOND)
    lost = draw(st.sets(st.integers(0, len(times) - 1), max_size=5))
    arrived, last_ns = [], -1
    for index, (time_ns, late) in enumerate(zip(times, late_ms, strict=True)):
        last_ns = max(last_ns + 1, together_ns, time_ns + late * MS)
        if index not in lost or index - 1 in lost:
            arrived.append(last_ns)
    return arrived
