"""`camgraph model profile`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from camgraph.tools.cli import main
from camgraph.tools.models.profile.events import Profile, read_profile
from camgraph.tools.models.profile.report import lines

pytestmark = pytest.mark.processes


def session(name: str, ts: int, dur: int) -> dict[str, Any]:
    return {"cat": "Session", "name": name, "ts": ts, "dur": dur, "args": {}}


def kernel(name: str, ts: int, dur: int, operator: str, provider: str = "CPUExecutionProvider") -> dict[str, Any]:
    shapes = [{"float": [1, 3, 2]}, {"int64": [4]}]
    args = {
        "op_name": operator, "provider": provider, "output_size": "1000", "parameter_size": "10",
        "mem_in_use_peak": str(ts), "mem_arena_held": "9000", "input_type_shape": shapes,
        "output_type_shape": [{"float": [6, 2]}],
    }  # fmt: skip
    return {"cat": "Node", "name": f"{name}_kernel_time", "ts": ts, "dur": dur, "args": args}


def three_runs() -> list[dict[str, Any]]:
    """A slow first run, then two of 10 ms: `a` takes 2 and 4 ms, `b` 6, `c` 1, on another provider."""
    cuda = "CUDAExecutionProvider"
    return [
        session("model_loading_uri", 0, 500),
        session("session_initialization", 500, 1500),
        session("model_run", 3000, 90_000),
        kernel("a", 3000, 80_000, "Conv"),
        session("model_run", 100_000, 10_000),
        kernel("a", 100_000, 2000, "Conv"),
        kernel("b", 102_000, 6000, "Conv"),
        kernel("c", 108_000, 1000, "Relu", cuda),
        session("model_run", 110_000, 10_000),
        kernel("a", 110_000, 4000, "Conv"),
        kernel("b", 114_000, 6000, "Conv"),
        kernel("c", 119_000, 1000, "Relu", cuda),
    ]


def of_three_runs() -> Profile:
    return read_profile(three_runs(), warm_up=1)


def test_a_profile_is_of_the_runs_after_the_warm_up() -> None:
    profile = of_three_runs()
    assert (profile.runs, profile.run_ms, profile.loading_ms) == (2, 10.0, 2.0)
    assert [(node.name, node.ms) for node in profile.nodes] == [("a", 3.0), ("b", 6.0), ("c", 1.0)]
    assert (profile.peak_bytes, profile.arena_bytes) == (119_000, 9000)
    assert profile.nodes[0].shapes == "1x3x2 -> 6x2"


def test_times_and_sizes_are_summed_by_operator_and_provider() -> None:
    profile = of_three_runs()
    conv, relu = profile.by_operator()
    assert (conv.name, conv.nodes, conv.ms, conv.share, conv.outputs, conv.weights) == ("Conv", 2, 9.0, 0.9, 2000, 20)
    assert (relu.name, relu.share) == ("Relu", 0.1)
    assert [group.name for group in profile.by_provider()] == ["CPUExecutionProvider", "CUDAExecutionProvider"]
    assert [node.name for node in profile.heaviest] == ["b", "a", "c"]


def test_a_node_in_a_loop_counts_each_time() -> None:
    events = [session("model_run", 0, 9000), *(kernel("a", 1 + ts, 1000, "Add") for ts in range(5))]
    [node] = read_profile(events).nodes
    assert (node.ms, node.outputs, node.weights) == (5.0, 5000, 10)


def test_times_of_starting_are_not_taken_for_more() -> None:
    profile = of_three_runs()
    assert any("started, not waited for" in line for line in lines(profile, "CUDA", 1))
    assert any("0.12 MB in use at most" in line for line in lines(profile, "CUDA", 1))


def test_a_profile_without_runs_is_refused() -> None:
    with pytest.raises(ValueError, match="expected more than 3 runs in the profile, got 3"):
        read_profile(three_runs(), warm_up=3)


def profiled(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["model", "profile", *map(str, arguments)])


def test_the_whole_command_profiles_a_model(tiny_model: Path, tmp_path: Path) -> None:
    saved, trace = tmp_path / "profile.json", tmp_path / "trace.json"
    found = profiled(tiny_model, "--batch", 2, "--runs", 5, "--json", saved, "--trace", trace)
    assert found.exit_code == 0, found.output
    assert "| Softmax | 1 |" in found.output
    output = json.loads(saved.read_text())
    assert output["runs"] == 5
    assert {group["name"] for group in output["by_provider"]} == {"CPUExecutionProvider"}
    convolutions = next(group for group in output["by_operator"] if group["name"] == "Conv")
    assert convolutions["outputs"] >= 2 * (8 + 4) * 32 * 32 * 4
    assert output["run_ms"] > 0
    assert any(event["name"] == "model_run" for event in json.loads(trace.read_text()))


def test_a_provider_that_is_not_here_is_an_error(tiny_model: Path) -> None:
    found = profiled(tiny_model, "--providers", "coreml")
    assert found.exit_code == 3
    assert "cannot be profiled on coreml" in found.output


def test_a_model_that_never_answers_is_given_up(endless_model: Path, tmp_path: Path) -> None:
    found = profiled(endless_model, "--seconds", 1, "--limit-seconds", 2, "--json", tmp_path / "profile.json")
    assert found.exit_code == 3, found.output
    assert "endless.onnx: it was not opened and run within 3 s" in found.output
    assert not (tmp_path / "profile.json").exists()


def test_what_lies_in_the_current_folder_is_not_run(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    found = profiled(tiny_model, "--runs", 1)
    assert found.exit_code == 0, found.output


def test_it_is_drawn(tiny_model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="no matplotlib (the extra `plots`)")
    found = profiled(tiny_model, "--runs", 2, "--plot", tmp_path / "profile.png")
    assert found.exit_code == 0, found.output
    assert (tmp_path / "profile.png").read_bytes()[:4] == b"\x89PNG"
