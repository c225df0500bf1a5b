"""Answers of nvidia-smi as people have posted them, of several generations of its driver."""

from __future__ import annotations

import pytest

from camgraph.tools.measuring.nvidia_smi import Gpu, GpuLoad, Version, busy_of, cuda_of, gpus_of, loads_of, version_of

BEFORE_610 = """\
Wed Jan 24 15:18:40 2024
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.40.07              Driver Version: 550.40.07      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4070        Off |   00000000:2D:00.0  On |                  N/A |
|  0%   36C    P5             17W /  200W |     430MiB /  12282MiB |      1%      Default |
"""
SINCE_610 = """\
Sun Jun  7 08:16:57 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA B200                    On  |   00000000:63:00.0 Off |                    0 |
"""
OLD = """\
+------------------------------------------------------+
| NVIDIA-SMI 331.62     Driver Version: 331.62         |
|-------------------------------+----------------------+----------------------+
"""
UNKNOWN = "| NVIDIA-SMI 470.57       Driver Version: 470.57       CUDA Version: N/A      |"
TWO = """\
NVIDIA GeForce RTX 4070, 550.40.07, 11582 MiB, 12282 MiB
NVIDIA RTX A2000, Laptop, 550.40.07, 3900 MiB, 4096 MiB
"""


@pytest.mark.parametrize(
    ("message", "cuda"), [(BEFORE_610, (12, 4)), (SINCE_610, (13, 3)), (OLD, None), (UNKNOWN, None), ("", None)]
)
def test_which_cuda_the_driver_runs(message: str, cuda: Version | None) -> None:
    assert cuda_of(message) == cuda


def test_gpus_have_names_with_commas_and_may_be_none() -> None:
    assert gpus_of(TWO) == [
        Gpu("NVIDIA GeForce RTX 4070", "550.40.07", "11582 MiB", "12282 MiB"),
        Gpu("NVIDIA RTX A2000, Laptop", "550.40.07", "3900 MiB", "4096 MiB"),
    ]
    assert gpus_of("No devices were found\n") == []


@pytest.mark.parametrize(("text", "version"), [("13.0", (13, 0)), ("12.8.1", (12, 8)), ("", None), ("none", None)])
def test_versions(text: str, version: Version | None) -> None:
    assert version_of(text) == version


@pytest.mark.parametrize(
    ("line", "busy"),
    [
        ("0, 87\n", (0, 0.87)),
        ("11, 0", (11, 0.0)),
        ("1, 100 %\n", (1, 1.0)),
        ("0, [N/A]\n", None),
        ("0, [Not Supported]\n", None),
        ("No devices were found\n", None),
        ("", None),
    ],
)
def test_how_busy_a_gpu_is(line: str, busy: tuple[int, float] | None) -> None:
    assert busy_of(line) == busy


def test_loads_may_be_unknown_and_lines_may_be_about_no_gpu() -> None:
    output = """\
0, 430, 12282, 1, NVIDIA GeForce RTX 4070
1, 3900, 4096, [N/A], NVIDIA RTX A2000, Laptop
2, [Unknown Error], [Unknown Error], [GPU requires reset], NVIDIA B200
No devices were found
Unable to determine the device handle for GPU0: 0000:01:00.0: GPU is lost, reboot, a, b, c
"""
    assert list(loads_of(output)) == [
        GpuLoad(0, "NVIDIA GeForce RTX 4070", 430 << 20, 12282 << 20, 0.01),
        GpuLoad(1, "NVIDIA RTX A2000, Laptop", 3900 << 20, 4096 << 20, None),
        GpuLoad(2, "NVIDIA B200", None, None, None),
    ]
