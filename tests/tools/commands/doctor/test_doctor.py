"""What the doctor says of a machine."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from camgraph.stages.people.inference.selection.trial import Trial
from camgraph.tools.cli import main
from camgraph.tools.commands.doctor import command, graph, machine, packages, providers
from camgraph.tools.commands.doctor.notice import Notice, worst
from camgraph.tools.lab.blinking import write_clip
from camgraph.tools.lab.light_model import write_model
from camgraph.tools.scenes.simulator.command import simulator

pytestmark = pytest.mark.processes

GRAPH = """
version: 1
cameras: {{a: {{url: a.mp4}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [64, 64]}}}}
  infer: {{use: infer, from: prepare, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people}}
  rules: {{use: rules, from: tracks, with: {{rules: [{{use: walking}}]}}}}
  {footage}
"""


def only(findings: Any) -> Notice:
    [finding] = findings
    assert isinstance(finding, Notice)
    return finding


def test_this_machine_is_fit() -> None:
    result = CliRunner().invoke(main, ["doctor", "--json"])
    assert result.exit_code == 0, result.output
    found = {one["what"]: one for one in json.loads(result.output)}
    assert found["provider cpu"]["state"] == "ok"
    assert {found[what]["state"] for what in ("python", "onnxruntime", "decoders")} == {"ok"}
    assert {"shared memory", "descriptors", "memory", "processors", "gpu", "port 8554", "port 7007"} <= set(found)


def test_a_double_runtime_is_wrong() -> None:
    one = {"onnxruntime": ["onnxruntime_gpu"], "onnxruntime_ep_openvino": ["onnxruntime-ep-openvino"], "onnx": ["onnx"]}
    assert only(packages.look_at_runtimes(one)).state == "ok"
    two = only(packages.look_at_runtimes({"onnxruntime": ["onnxruntime-gpu", "onnxruntime"]}))
    assert (two.state, "installed more than once" in two.found) == ("wrong", True)
    assert two.cure == "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu"
    assert only(packages.look_at_runtimes({})).state == "wrong"


@pytest.mark.parametrize(
    ("system", "machine", "package"),
    [
        ("Linux", "x86_64", "onnxruntime-gpu"),
        ("Linux", "aarch64", "onnxruntime"),
        ("Darwin", "arm64", "onnxruntime"),
        ("Windows", "AMD64", "onnxruntime-directml"),
    ],
)
def test_the_cure_is_the_runtime_of_this_system(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, package: str
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert only(packages.look_at_runtimes({})).cure == f"pip install {package}"
    two = only(packages.look_at_runtimes({"onnxruntime": ["onnxruntime", "onnxruntime-directml"]}))
    assert two.cure == f"pip uninstall -y onnxruntime onnxruntime-directml && pip install {package}"


def test_what_stands_beside_the_runtime_is_no_second_one() -> None:
    owners = {"onnxruntime": ["onnxruntime-gpu"], "onnxruntime_extensions": ["onnxruntime-extensions"]}
    assert only(packages.look_at_runtimes(owners)).state == "ok"


def test_doubly_installed_plugins_are_named() -> None:
    assert list(packages.look_at_plugins({"onnxruntime": ["onnxruntime-gpu"], "a": ["onnxruntime-ep-openvino"]})) == []
    twice = only(packages.look_at_plugins({"openvino": ["openvino", "openvino_nightly"]}))
    assert (twice.state, twice.what) == ("warning", "openvino")
    assert twice.cure == "pip uninstall -y openvino openvino-nightly && pip install openvino"
    rtx = "onnxruntime-ep-nv-tensorrt-rtx"
    for_two = only(
        packages.look_at_plugins({"one": [f"{rtx}-cu12"], "other": [f"{rtx}-cu13", "onnxruntime-ep-webgpu"]})
    )
    assert (for_two.state, for_two.what) == ("warning", "plugin")
    assert for_two.found == f"installed more than once: {rtx}-cu12, {rtx}-cu13"


def test_a_requirement_that_is_not_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "requires", lambda _: ["numpy>=999", "no-such-package>=1", "pytest; extra == 'dev'"])
    finding = only(packages.look_at_requirements("numpy"))
    assert finding.state == "wrong"
    assert "expected >=999; no-such-package is missing" in finding.found


def test_another_onnx_runtime_meets_the_requirement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "requires", lambda _: ["onnxruntime-none>=1.24"])
    assert only(packages.look_at_requirements("numpy")).state == "ok"
    monkeypatch.setattr(packages, "requires", lambda _: ["onnxruntime-none>=999"])
    assert "expected >=999" in only(packages.look_at_requirements("numpy")).found
    monkeypatch.setattr(packages, "packages_distributions", dict)
    assert "onnxruntime-none is missing" in only(packages.look_at_requirements("numpy")).found


def test_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = SimpleNamespace(f_bavail=10, f_frsize=2**20, f_blocks=64)
    assert only(machine.look_at_shared_memory(tmp_path / "absent")).state == "wrong"
    monkeypatch.setattr(machine.os, "statvfs", lambda _: small)
    finding = only(machine.look_at_shared_memory(tmp_path))
    assert (finding.state, "--shm-size" in finding.cure) == ("warning", True)
    assert finding.found.startswith("10 of 64 MiB free")


@pytest.mark.parametrize(("limits", "state"), [((1024, 1024), "warning"), ((1024, 1 << 20), "ok"), ((8192, -1), "ok")])
def test_descriptors(limits: tuple[int, int], state: str) -> None:
    assert only(machine.look_at_descriptors(limits)).state == state


def test_memory_and_processors() -> None:
    assert only(machine.look_at_memory("MemTotal: 9 kB\nMemAvailable: 1048576 kB\n")).state == "warning"
    assert only(machine.look_at_memory("MemAvailable: 9048576 kB\n")).state == "ok"
    assert "VNNI (fast int8), bf16" not in only(machine.look_at_processors("flags : sse2")).found
    assert "VNNI (fast int8), bf16" in only(machine.look_at_processors("flags : avx512_vnni avx512_bf16")).found


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken = only(machine.look_at_port(port, "camgraph farm"))
        assert (taken.state, "camgraph farm needs it" in taken.cure) == ("warning", True)
        assert taken.what == f"port {port}"
        assert only(machine.look_at_port(port, "camgraph demo", "it takes another")).cure == "it takes another"
    assert only(machine.look_at_port(port, "camgraph farm")).state == "ok"


def test_a_provider_that_only_claims_to_work_is_named() -> None:
    by_name = providers_found(lambda name: "" if name == "openvino" else f"no {name}")
    assert by_name["provider cpu"].state == "wrong"
    assert by_name["provider openvino"].found == "runs a model"
    assert by_name["provider cuda"].found == "not available here (no cuda)"
    assert "provider directml" not in by_name, "of another system"


def providers_found(
    why_not: Callable[[str], str], *, nvidia: bool = False, openvino: bool = False
) -> dict[str, Notice]:
    found = providers.look_at_providers(lambda name: Trial(why_not(name)), nvidia=nvidia, openvino=openvino)
    return {one.what: one for one in found}


def test_where_nothing_can_be_tried_no_provider_is_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as with a Python that this user may not start."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (found,) = providers.look_at_providers(nvidia=True, openvino=True)
    assert (found.state, found.what) == ("wrong", "providers")
    assert found.found == "it could not be tried: /nowhere/python: No such file or directory"
    assert "reinstall" not in found.cure


def test_a_gpu_that_does_not_run_models_is_not_ok() -> None:
    by_name = providers_found(lambda name: f"no {name}" if name != "cpu" else "", nvidia=True)
    assert [by_name[f"provider {name}"].state for name in ("cuda", "tensorrt", "openvino")] == [
        "wrong",
        "warning",
        "ok",
    ]
    assert by_name["provider cuda"].found == "does not work, and NVIDIA's driver is here (no cuda)"
    assert by_name["provider cuda"].cure.startswith("pip install 'camgraph[cuda]'")
    by_name = providers_found(lambda name: "" if name != "openvino" else "a library", openvino=True)
    assert by_name["provider openvino"].state == "warning"


def test_ports_are_those_that_commands_take_by_default() -> None:
    assert {option.default for option in simulator.params if option.name == "port"} == {command._FARM_PORT}


def test_the_worst_finding_decides() -> None:
    assert worst([Notice("ok", "a", "b"), Notice("warning", "a", "b")]) == "warning"
    assert worst([Notice("wrong", "a", "b"), Notice("warning", "a", "b")]) == "wrong"
    assert worst([]) == "ok"


def about_clips(file: Path) -> list[Notice]:
    return [finding for finding in graph.look_at_graph(file, ()) if finding.what == "clips"]


def test_a_disk_without_hard_links_is_told_with_the_graph(tmp_path: Path, disk_without_links: Path) -> None:
    write_clip(tmp_path / "a.mp4")
    write_model(tmp_path / "light.onnx", bright=110.0)
    file = tmp_path / "g.yaml"
    footage = f"footage: {{use: sink_footage, from: rules, with: {{path: {disk_without_links}}}}}"
    file.write_text(GRAPH.format(footage=footage))
    told = only(about_clips(file))
    assert (told.state, "no hard links" in told.found) == ("warning", True)
    file.write_text(GRAPH.format(footage=f"footage: {{use: sink_footage, from: rules, with: {{path: {tmp_path}}}}}"))
    assert only(about_clips(file)).state == "ok"
