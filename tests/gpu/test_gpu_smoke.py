"""The smoke plan on the pretended GPU: all of its steps run, and kernels that calculate nothing do not pass."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.waiting import until

from camgraph.tools.lab.benchmarks.gpu_smoke.steps import STEPS

pytestmark = pytest.mark.lab
FIND_NOTHING = {"people", "prepared", "fp16"}
"""Steps that fail here: kernels that calculate nothing find nobody."""
NO_DECODER = {"cameras_cuda", "cameras_shared"}
"""And two for which a GPU must decode."""
NVIDIA_SMI = """#!/bin/sh
case "$*" in
    *utilization*) echo "0, 40" ;;
    *memory.free*) echo "Pretended, 580.65.06, 8192 MiB, 8192 MiB" ;;
    *) echo "| NVIDIA-SMI 580.65.06    Driver Version: 580.65.06    CUDA Version: 13.0 |" ;;
esac
"""


def plan(pose: Path, clip: Path, saved: Path, *steps: str) -> list[str]:
    only = [word for step in steps for word in ("--only", step)]
    few = ["--seconds", "0.3", "--frames", "4", "--cameras", "2"]
    return [
        "-m",
        "camgraph.tools.lab.benchmarks.gpu_smoke",
        "--model",
        str(pose),
        "--clip",
        str(clip),
        "--json",
        str(saved),
        *few,
        *only,
    ]


RUNS_OF_GRAPHS = ["files", "kill", "out_of_memory", "workers", "cameras_cpu", "cameras_shared", "cameras_cuda"]
OTHERS = ["libraries", "doctor", "peers", "doctor_after"]
MODEL_ALONE = [step for step in STEPS if step not in {*RUNS_OF_GRAPHS, *OTHERS}]


@pytest.fixture(autouse=True)
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that says what belongs to the pretended GPU."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(NVIDIA_SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("steps", [MODEL_ALONE, RUNS_OF_GRAPHS, OTHERS], ids=["model", "graphs", "others"])
def test_every_step_runs(cuda: Any, pose: Path, clip: Path, tmp_path: Path, steps: list[str]) -> None:
    saved = tmp_path / "smoke.json"
    with cuda.start(*plan(pose, clip, saved, *steps), kernel_ms=5) as process:
        out, err = process.communicate(timeout=1400)
    results = {result["step"]: result for result in json.loads(saved.read_text())["results"]}
    assert list(results) == steps, err
    failed = {step for step, result in results.items() if result["state"] != "passed"}
    assert failed == (FIND_NOTHING | NO_DECODER).intersection(steps), out
    assert process.returncode == (1 if failed else 0)
    if "people" in results:
        figures = results["people"]["figures"]
        assert (figures["cpu"], figures["gpu"], figures["both"]) == (4, 0, 0)


@pytest.mark.timeout(600)
def test_it_can_be_stopped_at_any_time_and_keeps_what_it_has(cuda: Any, pose: Path, clip: Path, tmp_path: Path) -> None:
    saved = tmp_path / "smoke.json"
    with cuda.start(*plan(pose, clip, saved, "libraries", "files")) as process:
        until(saved.exists, 300)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=200)
    assert process.returncode == 130
    states = [(result["step"], result["state"]) for result in json.loads(saved.read_text())["results"]]
    assert states in ([("libraries", "passed")], [("libraries", "passed"), ("files", "stopped")])
    left = subprocess.run(["pgrep", "-f", str(clip)], capture_output=True, text=True, check=False).stdout
    assert left == ""
