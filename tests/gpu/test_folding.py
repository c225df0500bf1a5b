"""A model on a GPU gets its pictures as uint8: what is copied to the device, and what is said of the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

INFER = """
import json, sys
from pathlib import Path
import numpy as np
from structlog.testing import capture_logs
from pipeline.single_stage import feed, opened, stamp
from stages.infer import Infer
from stages.inference.signatures import signature_of_file
from stages.messages import Tensor

model, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
width, height = size = settings.get("picture_size", (64, 64))
fit = np.array([[1, 1, 0, 0]], np.float32)
pictures = np.random.default_rng(0).integers(0, 256, (6, 1, height, width, 3), np.uint8)
items = [Tensor(stamp(n), {"image": picture}, fit, size, size) for n, picture in enumerate(pictures)]
settings["model"] = str(model)
with capture_logs() as logs, opened(Infer, settings, folder=model.parent, batch_max=2) as stage:
    for batch in (1, 2):
        print([list(tensor.arrays_by_name) for tensor in feed(stage, items, batch=batch)][0], end=" ")
    engine = stage._engine
    session = engine._session
    assert engine.signature == signature_of_file(model)
print()
print(json.dumps({"input": session.get_inputs()[0].type, "provider": engine.provider, "logs": logs}))
"""
PIXELS = 64 * 64 * 3


def infer(cuda: Any, model: Path, **settings: Any) -> tuple[dict[str, Any], list[int]]:
    """What the stage is like on this CUDA, and the bytes of each batch on its way to it: six of one, three of two."""
    told = {"providers": ["cuda"], **settings}
    done = cuda.run("-c", INFER, str(model), json.dumps(told))
    assert done.status == 0, done.err
    copies = [call for call in done.named("cudaMemcpyAsync") if call["way"] == "to device"][-9:]
    assert all(call["pinned"] for call in copies) == (told["providers"] == ["cuda"]), copies
    return json.loads(done.out.splitlines()[-1]), [call["bytes"] for call in copies]


def said(stage: dict[str, Any], event: str) -> list[dict[str, Any]]:
    return [line for line in stage["logs"] if line["event"] == event]


def test_a_quarter_of_the_bytes_goes_to_the_device(cuda: Any, pose: Path) -> None:
    folded, copies = infer(cuda, pose)
    assert folded["input"] == "tensor(uint8)"
    assert copies == [PIXELS] * 6 + [2 * PIXELS] * 3
    plain, of_floats = infer(cuda, pose, fold_preprocessing="never")
    assert plain["input"] == "tensor(float)"
    assert of_floats == [4 * size for size in copies]


def test_what_is_said_is_said_of_the_model_itself(cuda: Any, pose: Path) -> None:
    stage, _ = infer(cuda, pose)
    [line] = said(stage, "preprocessing_folded")
    assert line["model"] == str(pose)
    assert [Path(line["copy"])] == list((cuda.folder / "cache" / "folded").iterdir())
    [opened] = said(stage, "model_opened")
    assert (opened["model"], opened["operations"]) == (str(pose), "CUDAExecutionProvider 100.0%")
    again, _ = infer(cuda, pose)
    assert said(again, "preprocessing_folded") == [line]


def test_a_cache_that_cannot_be_written_keeps_nobody_from_it(cuda: Any, pose: Path) -> None:
    (cuda.folder / "cache").write_text("a file where the folder should be")
    stage, copies = infer(cuda, pose)
    assert (stage["input"], copies[0]) == ("tensor(uint8)", PIXELS)
    [line] = said(stage, "preprocessing_folded")
    assert line["copy"].startswith("in memory: ")


@pytest.mark.parametrize("options", [{}, {"options": {"cuda": {"enable_cuda_graph": True}}, "batch_sizes": [1, 2]}])
@pytest.mark.parametrize("given", [{"order": "bgr"}, {"scale": 0.0170001}])
def test_all_of_it_is_on_the_gpu_whatever_is_folded(
    cuda: Any, pose: Path, given: dict[str, Any], options: dict[str, Any]
) -> None:
    """`[cuda]` alone leaves no node to the CPU."""
    told = {"providers": ["cuda"], "input": given, **options}
    done = cuda.run("-c", INFER, str(pose), json.dumps(told))
    assert done.status == 0, done.err
    assert json.loads(done.out.splitlines()[-1])["input"] == "tensor(uint8)"


def test_a_model_that_takes_pixels_runs_as_it_is(cuda: Any, pose: Path) -> None:
    from stages.inference.contracts import InputSettings, read_contract
    from stages.inference.pixel_folding import NOTHING_NORMALISED, fold_pixels
    from stages.inference.signatures import signature_of_file

    model = onnx.load(pose)
    fold_pixels(model.graph, read_contract(signature_of_file(pose), "pose", InputSettings()), NOTHING_NORMALISED)
    own = pose.with_name("own.onnx")
    onnx.save(model, own)
    stage, copies = infer(cuda, own)
    [line] = said(stage, "preprocessing_not_folded")
    assert line["why"] == "it takes uint8 RGB pictures as they are"
    assert copies == [PIXELS] * 6 + [2 * PIXELS] * 3
    assert not (cuda.folder / "cache").exists()


def test_the_cpu_gets_what_it_always_got(cuda: Any, pose: Path) -> None:
    for parts, providers in ((cuda.parts, ["cpu"]), ((), ["cuda", "cpu"])):
        cuda.parts = parts
        told = json.dumps({"providers": providers})
        stage = json.loads(cuda.run("-c", INFER, str(pose), told).out.splitlines()[-1])
        assert (stage["input"], stage["provider"]) == ("tensor(float)", "CPUExecutionProvider")
        assert not said(stage, "preprocessing_folded")
        assert not said(stage, "preprocessing_not_folded")
        assert not (cuda.folder / "cache").exists()
