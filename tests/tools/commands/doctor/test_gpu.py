"""What the doctor says of GPUs, by what a driver's file and nvidia-smi say."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from camgraph.tools.commands.doctor.gpu import Nvidia, look_at_cuda, look_at_gpu, look_for_nvidia
from camgraph.tools.commands.doctor.notice import Notice
from camgraph.tools.measuring.nvidia_smi import GPUS, Gpu

HEAD = "| NVIDIA-SMI 550.40.07              Driver Version: 550.40.07      CUDA Version: 12.4     |\n"
LINE = "NVIDIA L4, 550.40.07, 22491 MiB, 23034 MiB\n"
L4 = Gpu("NVIDIA L4", "550.40.07", "22491 MiB", "23034 MiB")


def answers(options: Sequence[str]) -> str:
    return LINE if options == GPUS else HEAD


def sees_none(options: Sequence[str]) -> str:
    return "No devices were found\n" if options == GPUS else HEAD


def is_missing(_: Sequence[str]) -> str:
    raise FileNotFoundError(2, "No such file or directory", "nvidia-smi")


def hangs(_: Sequence[str]) -> str:
    raise subprocess.TimeoutExpired("nvidia-smi", 20)


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    path = tmp_path / "version"
    path.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.40.07\n")
    return path


def test_nvidia_smi_suffices_without_driver_file(tmp_path: Path) -> None:
    found = look_for_nvidia(tmp_path / "absent", answers)
    assert found == Nvidia(driver=False, gpus=[L4], cuda=(12, 4))
    assert found.is_here
    assert [*look_at_gpu(found)] == [Notice("ok", "gpu", "NVIDIA L4, driver 550.40.07, 22491 MiB of 23034 MiB free")]


def test_without_a_driver_all_is_well(tmp_path: Path) -> None:
    found = look_for_nvidia(tmp_path / "absent", is_missing)
    assert not found.is_here
    [finding] = look_at_gpu(found)
    assert (finding.state, finding.cure) == ("ok", "")
    assert [*look_at_cuda(found, "13.0")] == []


@pytest.mark.parametrize(
    ("ask", "message"), [(is_missing, "does not answer"), (hangs, "does not answer"), (sees_none, "it sees no GPU")]
)
def test_a_driver_without_a_gpu_is_a_warning(driver: Path, ask: object, message: str) -> None:
    assert callable(ask)
    found = look_for_nvidia(driver, ask)
    [finding] = look_at_gpu(found)
    assert (found.is_here, finding.state) == (True, "warning")
    assert message in finding.found
    assert finding.cure


@pytest.mark.parametrize(
    ("cuda", "built_for", "state", "message"),
    [
        ((13, 0), "13.0", "ok", "the driver runs CUDA up to 13.0, this ONNX Runtime was built for 13.0"),
        ((12, 4), "12.8", "ok", "the driver runs CUDA up to 12.4, this ONNX Runtime was built for 12.8"),
        ((13, 3), "12.8", "ok", "the driver runs CUDA up to 13.3, this ONNX Runtime was built for 12.8"),
        ((12, 4), "13.0", "wrong", "the driver runs CUDA up to 12.4, this ONNX Runtime was built for 13.0"),
        (None, "13.0", "warning", "nvidia-smi does not say which CUDA the driver runs"),
        ((13, 0), "", "warning", "this ONNX Runtime was built without CUDA"),
    ],
)
def test_the_drivers_cuda_against_that_of_the_runtime(
    cuda: tuple[int, int] | None, built_for: str, state: str, message: str
) -> None:
    [finding] = look_at_cuda(Nvidia(driver=True, gpus=[L4], cuda=cuda), built_for)
    assert (finding.state, finding.what) == (state, "cuda")
    assert finding.found.startswith(message)
    assert bool(finding.cure) is (state != "ok")


def test_the_cure_names_both_ways_out() -> None:
    [finding] = look_at_cuda(Nvidia(driver=True, gpus=[L4], cuda=(12, 4)), "13.0")
    assert finding.cure == (
        "install a driver for CUDA 13 (580 or later), or pip install 'onnxruntime-gpu[cuda,cudnn]>=1.24,<1.27'"
    )
