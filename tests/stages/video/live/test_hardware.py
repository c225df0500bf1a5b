"""Where pictures are decoded."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from camgraph.stages.video.live import hardware


def test_that_there_is_no_device_is_found_out_once() -> None:
    hardware.why_no_cuda.cache_clear()
    first = hardware.why_no_cuda()
    assert hardware.why_no_cuda() is first
    assert hardware.why_no_cuda.cache_info().misses == 1
    if not Path("/dev/nvidiactl").exists():
        assert first.startswith("no CUDA device can be opened: ")


@pytest.mark.parametrize(("form", "problem"), [("nv12", ""), ("p010le", ""), ("yuv420p", "pictures come as yuv420p")])
def test_pictures_say_where_they_come_from(form: str, problem: str) -> None:
    assert hardware.why_not_on_device(av.VideoFrame(64, 64, form), "h264").endswith(problem)
