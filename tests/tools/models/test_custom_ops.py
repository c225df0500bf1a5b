"""Models with operators of their own, on the command line: the library that is named is opened, and no other."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from camgraph.tools.cli import main


@pytest.fixture
def folder(turned_model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`own.onnx` has an operator of the domain `own.ops`; `ops.so` is no library, so opening it fails by its name."""
    model = onnx.load(str(turned_model))
    model.graph.node[1].domain = "own.ops"
    model.opset_import.add(domain="own.ops", version=1)
    folder = turned_model.parent
    onnx.save(model, folder / "own.onnx")
    (folder / "ops.so").write_bytes(b"no library")
    cv2.imwrite(str(folder / "p.png"), np.full((64, 64, 3), 90, np.uint8))
    monkeypatch.chdir(folder)
    return folder


COMMANDS = {
    "inspect": ["own.onnx"],
    "bench": ["own.onnx", "--providers", "cpu", "--batch", "1", "--threads", "1", "--seconds", "1", "--rounds", "1"],
    "profile": ["own.onnx"],
    "compare": ["own.onnx", "turned.onnx", "--frames", "p.png"],
}
KIND = ["--format", "yolo_pose", "--keypoints", "17"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("folder")
@pytest.mark.processes
def test_a_named_library_is_opened_with_the_model(command: str) -> None:
    arguments = ["model", command, *COMMANDS[command], *KIND]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "operators of own.ops, which ONNX Runtime does not know: name the library" in result.output
    assert "--custom-ops` of inspect, bench, profile and compare" in result.output
    result = CliRunner().invoke(main, [*arguments, "--custom-ops", "none.so"])
    assert (result.exit_code, "no such library of operators: " in result.output) == (2, True)
    result = CliRunner().invoke(main, [*arguments, "--custom-ops", "ops.so"])
    assert result.exit_code == {"inspect": 2, "profile": 3, "compare": 2, "bench": 1}[command], result.output
    assert "which ONNX Runtime does not know" not in result.output
    assert "ops.so" in result.output
