from __future__ import annotations

import os
from pathlib import Path

import pytest

from camgraph.tools.commands.watching import device
from camgraph.tools.commands.watching.device import Device, find_device

CORES = min(len(os.sched_getaffinity(0)), 64)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_text("no model")
    return path


def test_without_a_driver_all_cores_work(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "has_driver", lambda: False)
    assert find_device(model) == Device(("cpu",), 1, CORES)


@pytest.mark.processes
def test_a_gpu_that_cannot_run_the_model_is_told_of(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real attempt, on a file that no device can run; without a driver, that is what is said."""
    monkeypatch.setattr(device, "has_driver", lambda: True)
    found = find_device(model)
    assert (found.providers, found.batch, found.threads) == (("cpu",), 1, CORES)
    assert "m.onnx" in found.why_not or "NVIDIA's driver is missing" in found.why_not


def test_a_gpu_that_runs_the_model_gets_batches(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "has_driver", lambda: True)
    assert find_device(model, lambda _: "") == Device(("cuda", "cpu"), 8, 2)


def test_a_model_that_is_not_there_yet_is_not_tried(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "has_driver", lambda: True)
    assert find_device(model.with_name("other.onnx")) == Device(("cpu",), 1, CORES)
