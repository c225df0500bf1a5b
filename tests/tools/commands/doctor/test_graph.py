"""Whether the limits of a graph fit into its GPUs: a graph file against what nvidia-smi says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from camgraph.tools.commands.doctor.graph import Share, limits_against, look_at_graph
from camgraph.tools.commands.doctor.notice import Notice
from camgraph.tools.measuring.nvidia_smi import Gpu

GPU = Gpu("NVIDIA L4", "580.65.06", "22491 MiB", "23034 MiB")
GRAPH = """
version: 1
cameras: {a: {url: a.mp4}, b: {url: a.mp4}}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture}
  infer:
    use: infer
    from: prepare
    workers: 2
    batch: {max: 8}
    with: {model: model.onnx, providers: [cuda], OPTIONS}
  end: {use: sink_null, from: infer}
"""


@pytest.fixture
def folder(tmp_path: Path, two_people: Path, short_clip: Path) -> Path:
    """A pose model, and a video."""
    (tmp_path / "a.mp4").symlink_to(short_clip)
    (tmp_path / "model.onnx").symlink_to(two_people)
    return tmp_path


def findings(folder: Path, options: str, *gpus: Gpu) -> list[Notice]:
    (folder / "g.yaml").write_text(GRAPH.replace("OPTIONS", options))
    return [*look_at_graph(folder / "g.yaml", gpus)]


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (
            "options: {cuda: {gpu_mem_limit: 4GB}}",
            [("ok", 0, "24,000 MB together (6 sizes of batches in 2 processes)")],
        ),
        ("options: {cuda: {gpu_mem_limit: 5GB}}", [("warning", 0, "30,000 MB together (6 sizes")]),
        ("options: {cuda: {gpu_mem_limit: 5GB}}, batch_sizes: [8]", [("ok", 0, "10,000 MB together (2 sizes")]),
        ("options: {cuda: {gpu_mem_limit: 5GB, enable_cuda_graph: true}}", [("ok", 0, "10,000 MB together (2 sizes")]),
        (
            "devices: [0, 1], options: {cuda: {gpu_mem_limit: 5GB}}",
            [("ok", 0, "15,000 MB together (3 sizes of batches in 1 process)"), ("ok", 1, "15,000 MB together (3")],
        ),
        ("options: {cuda: {device_id: 1}}", [("ok", 1, "infer: no `gpu_mem_limit`")]),
    ],
)
@pytest.mark.processes
def test_the_limits_of_a_graph_against_its_gpus(
    folder: Path, options: str, reported: list[tuple[str, int, str]]
) -> None:
    found = findings(folder, options, GPU, GPU)
    assert [(one.state, one.what) for one in found] == [
        (state, f"memory of GPU {device}") for state, device, _ in reported
    ]
    assert all(text in one.found for one, (_, _, text) in zip(found, reported, strict=True)), found
    assert [bool(one.cure) for one in found] == [state == "warning" for state, *_ in reported]


def test_a_graph_that_is_none_is_said(folder: Path) -> None:
    [finding] = findings(folder, "options: {cuda: {gpu_mem_limit: much}}", GPU)
    assert (finding.state, finding.what) == ("wrong", "graph")
    assert "gpu_mem_limit" in finding.found
    assert finding.cure == f"camgraph check {folder / 'g.yaml'}"


def test_limits_add_up_and_unknown_gpu_warns() -> None:
    shares = [Share("day", 0, 10**10, 1), Share("night", 0, 5 * 10**9, 3)]
    [beyond] = limits_against(shares, [GPU])
    assert beyond.found == (
        "limits of 25,000 MB together (4 sizes of batches in 2 processes), but it has 24,153: they do not protect it"
    )
    [silent] = limits_against(shares, [])
    assert (silent.state, "does not say" in silent.found) == ("warning", True)
    assert [*limits_against([], [GPU])] == []


@pytest.mark.parametrize("options", ["devices: [0, 1]", "devices: [0, 1], options: {cuda: {gpu_mem_limit: 1GB}}"])
def test_a_gpu_that_is_not_there_is_named(folder: Path, options: str) -> None:
    here, missing = findings(folder, options, GPU)
    assert (here.state, here.what) == ("ok", "memory of GPU 0")
    assert (missing.state, missing.what) == ("warning", "memory of GPU 1")
    assert missing.found == "infer: is to run there, and nvidia-smi sees GPU 0 alone"
    assert "`devices`" in missing.cure


def test_the_command_takes_a_graph(folder: Path, camgraph: Callable[..., Any]) -> None:
    findings(folder, "options: {cuda: {device_id: 0}}")
    output = {one["what"]: one for one in json.loads(camgraph("doctor", "g.yaml", "--json").stdout)}
    assert output["memory of GPU 0"]["state"] == "ok"
