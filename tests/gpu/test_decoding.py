"""Which contexts FFmpeg's decoders take on a GPU, and what is said where a part of the driver is missing.

The pretended driver opens a device; it decodes nothing.
"""

from __future__ import annotations

from typing import Any

import pytest

from camgraph.tools.scenes.simulator.rtsp_simulator import RtspSimulator
from camgraph.tools.scenes.simulator.settings import CameraSettings, ClipSettings

TWO_CAMERAS = """
import av
from camgraph.stages.video.live.hardware import context_for, why_no_cuda

clip = av.open("noise.mp4")
contexts = [context_for(clip.streams.video[0], "cuda", DEVICE)[0] for _ in range(2)]
for context in contexts:
    context.open(strict=False)
print(repr(why_no_cuda(DEVICE)))
"""
GRAPH = """
version: 1
cameras: {a: {url: "ADDRESS", decode: cuda}}
stages:
  capture: {use: capture}
  end: {use: sink_null, from: capture}
"""


@pytest.mark.usefixtures("clip")
@pytest.mark.parametrize("device", [0, 1])
def test_cameras_share_the_primary_context(cuda: Any, device: int) -> None:
    cuda.parts = ("driver", "video")
    done = cuda.python(TWO_CAMERAS.replace("DEVICE", str(device)), gpus=2)
    assert done.out == "''\n"
    assert done.named("cuCtxCreate") == []
    retained = done.named("cuDevicePrimaryCtxRetain")
    assert retained
    assert {(call["device"], call["flags"]) for call in retained} == {(device, 4)}


def test_a_missing_decoder_ends_the_run_and_names_the_capability(cuda: Any) -> None:
    """As in a container that was given `compute` and `utility` alone, which is the default."""
    cuda.parts = ("driver",)
    with RtspSimulator([CameraSettings(name="a", clip=ClipSettings(width=64, height=64, fps=10.0))]) as simulator:
        (cuda.folder / "g.yaml").write_text(GRAPH.replace("ADDRESS", simulator.cameras[0].url))
        done = cuda.run("-m", "camgraph.tools.cli", "run", "g.yaml", "--quiet")
    assert done.status == 3, done.err
    assert "libnvcuvid.so.1, which decodes, is missing" in done.err
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility,video" in done.err


def test_the_doctor_says_that_there_is_no_decoder(cuda: Any) -> None:
    program = """
from camgraph.tools.commands.doctor.codecs import look_at_hardware
for finding in look_at_hardware():
    print(finding)
"""
    cuda.parts = ("driver",)
    assert "the capability `video`" in cuda.python(program).out
    cuda.parts = ("driver", "video")
    assert "a device can be opened" in cuda.python(program).out
