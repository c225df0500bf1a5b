"""How busy a GPU is, by lines of nvidia-smi; who says them here is a program of the test's own."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import until
from click.testing import CliRunner

from camgraph.tools.lab.benchmarks.peers import __main__ as bench_peers
from camgraph.tools.lab.benchmarks.peers.contestants import BARE, LIGHT, OURS, PEERS
from camgraph.tools.lab.benchmarks.peers.environments import NotToBeHad
from camgraph.tools.lab.benchmarks.peers.figures import Run, rows_of, run_of
from camgraph.tools.lab.benchmarks.peers.gpu import COMMAND, GpuMeter, Look, busy_between
from camgraph.tools.lab.benchmarks.peers.graph import PLACINGS, graph_text
from camgraph.tools.lab.benchmarks.peers.job import Answer, Job
from camgraph.tools.lab.benchmarks.peers.meter import Watched, watch
from camgraph.tools.lab.benchmarks.peers.page import tables

pytestmark = pytest.mark.processes

JOB = Job("model.onnx", ["a.mp4"] * 4, 50, (640, 640), 0.3, 0.5, 2, "cuda")
SAYS = "print('0, 40', '1, [N/A]', '2, 0', sep=chr(10))"
"""As nvidia-smi answers where there are three GPUs, and one does not tell."""
FAILS = "import sys; sys.exit(9)"
"""As nvidia-smi does without a driver."""


def test_what_is_asked_of_nvidia_smi() -> None:
    options = ["--query-gpu=index,utilization.gpu", "--format=csv,noheader,nounits"]
    assert ["nvidia-smi", *options] == [*COMMAND]


def test_the_busiest_gpu_counts_and_only_between_the_moments() -> None:
    looks = [Look(1.0, 0, 1.0), Look(2.0, 0, 0.5), Look(3.0, 0, 0.7), Look(3.0, 1, 0.1), Look(4.0, 0, 0.0)]
    assert busy_between(looks, 1.0, 3.0) == pytest.approx(0.6)
    assert busy_between(looks, 4.0, 9.0) is None
    assert busy_between([], 0.0, 9.0) is None


def test_it_looks_again_and_again() -> None:
    began = time.monotonic()
    with GpuMeter([sys.executable, "-c", SAYS]) as meter:
        until(lambda: len(meter.looks) >= 6)
    assert [(look.gpu, look.busy) for look in meter.looks[:4]] == [(0, 0.4), (2, 0.0)] * 2
    assert began < meter.looks[0].at_s < meter.looks[2].at_s < meter.looks[4].at_s < time.monotonic()


def test_without_an_answer_nobody_takes_part(tmp_path: Path) -> None:
    for command in ([str(tmp_path / "nvidia-smi")], [sys.executable, "-c", FAILS]):
        with pytest.raises(NotToBeHad, match="cannot be seen without nvidia-smi"):
            watch([sys.executable, "-c", ""], limit_s=60, gpu=GpuMeter(command))


def test_gpu_use_is_sampled_beside_processor_time() -> None:
    seen = watch([sys.executable, "-c", "print(1)"], limit_s=60, gpu=GpuMeter([sys.executable, "-c", SAYS]))
    assert {(look.gpu, look.busy) for look in seen.gpu} == {(0, 0.4), (2, 0.0)}
    answer = Answer(10 * 10**9, 14 * 10**9, [50], [7])
    looks = [Look(9.0, 0, 1.0), Look(11.0, 0, 0.8), Look(13.0, 0, 0.9)]
    assert run_of("x", 1, JOB, answer, Watched("", [(0.0, 0.0), (20.0, 1.0)], [], looks)).gpu == pytest.approx(0.85)


def test_the_page_has_one_more_column_and_no_marks_of_processors() -> None:
    runs = [
        Run(name, 4, number, 200, 200, (7, 7), 2.0, 1.0, 100.0, None, None, gpu)
        for name, gpu in ((BARE, 0.99), (OURS[0], None))
        for number in (1, 2)
    ]
    page = tables(rows_of(runs, cores=2), [], 4, {})
    head, _, bare, ours = page.splitlines()[:4]
    assert head.endswith("| frames lost | share of time the GPU is busy |")
    assert bare.endswith("| 0 | 0.99 |")
    assert ours.endswith("| 0 | - |")
    assert len({line.count("|") for line in page.splitlines()[:4]}) == 1
    assert "Marks" not in page


def test_on_a_gpu_all_are_told_so() -> None:
    text = graph_text(JOB, PLACINGS["separate"])
    assert "providers: [cuda]" in text
    assert "batch: {max: 4}" in text
    assert json.loads(JOB.to_json())["provider"] == "cuda"
    assert all(any("gpu" in one for one in peer.on_gpu) for peer in PEERS.values())


def test_peers_without_gpu_support_are_left_out(
    two_people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clip: Path
) -> None:
    """On a machine without a GPU, with a program that only looks like nvidia-smi."""
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(f"#!{sys.executable}\n{SAYS}\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(smi.parent), prepend=":")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    options = ["--model", str(two_people), "--clip", str(clip), "--frames", "8", "--count", "1", "--rounds", "1"]
    loop = "OpenCV + ONNX Runtime loop"
    result = CliRunner().invoke(
        bench_peers.main,
        [*options, "--size", "64", "64", "--gpu", "--only", loop, "--only", OURS[1]],
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    assert all(f"- {name} did not take part: " in result.output for name in (BARE, loop, OURS[1]))
    assert "has no CUDAExecutionProvider here" in result.output
    assert LIGHT not in result.output
    assert " --gpu`" in result.output
    assert "--gpu True" not in result.output
