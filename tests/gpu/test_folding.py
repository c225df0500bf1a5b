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
from camgraph.pipeline.single_stage import feed, opened, stamp
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.inference.signatures import signature_of_file
from camgraph.stages.messages import Tensor

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
    told = {"input": session.get_inputs()[0].type, "output": session.get_outputs()[0].shape[1:]}
    told |= {"provider": engine.provider, "nodes": sorted(set(engine.placement.nodes[engine.provider]))}
    told["counts"] = sum(count for (name, _), count in stage.context.counts.items() if name == "skipped.candidates")
print()
print(json.dumps({**told, "logs": logs}))
"""
PIXELS = 64 * 64 * 3


def infer(cuda: Any, model: Path, **settings: Any) -> tuple[dict[str, Any], list[int]]:
    """What the stage is like on this CUDA, and the bytes of each batch on its way to it: six of one, three of two."""
    given = {"providers": ["cuda"], **settings}
    done = cuda.run("-c", INFER, str(model), json.dumps(given))
    assert done.status == 0, done.err
    copies = [call for call in done.named("cudaMemcpyAsync") if call["way"] == "to device"][-9:]
    assert all(call["pinned"] for call in copies) == (given["providers"] == ["cuda"]), copies
    return json.loads(done.out.splitlines()[-1]), [call["bytes"] for call in copies]


def lines_of(stage: dict[str, Any], event: str) -> list[dict[str, Any]]:
    return [line for line in stage["logs"] if line["event"] == event]


def test_a_quarter_of_the_bytes_goes_to_the_device(cuda: Any, pose: Path) -> None:
    folded, copies = infer(cuda, pose)
    assert folded["input"] == "tensor(uint8)"
    assert copies == [PIXELS] * 6 + [2 * PIXELS] * 3
    plain, of_floats = infer(cuda, pose, fold="never")
    assert plain["input"] == "tensor(float)"
    assert of_floats == [4 * size for size in copies]


def test_what_is_said_is_said_of_the_model_itself(cuda: Any, pose: Path) -> None:
    stage, _ = infer(cuda, pose)
    [line] = lines_of(stage, "preprocessing_folded")
    assert line["model"] == str(pose)
    assert [Path(line["copy"])] == list((cuda.folder / "cache" / "folded").iterdir())
    [opened] = lines_of(stage, "model_opened")
    assert (opened["model"], opened["operations"]) == (str(pose), "CUDAExecutionProvider 100.0%")
    again, _ = infer(cuda, pose)
    assert lines_of(again, "preprocessing_folded") == [line]


def test_a_cache_that_cannot_be_written_keeps_nobody_from_it(cuda: Any, pose: Path) -> None:
    (cuda.folder / "cache").write_text("a file where the folder should be")
    stage, copies = infer(cuda, pose)
    assert (stage["input"], copies[0]) == ("tensor(uint8)", PIXELS)
    [line] = lines_of(stage, "preprocessing_folded")
    assert line["copy"].startswith("in memory: ")


@pytest.mark.parametrize("options", [{}, {"options": {"cuda": {"enable_cuda_graph": True}}, "batch_sizes": [1, 2]}])
@pytest.mark.parametrize("given", [{"order": "bgr"}, {"scale": 0.0170001}])
def test_all_of_it_is_on_the_gpu_whatever_is_folded(
    cuda: Any, pose: Path, given: dict[str, Any], options: dict[str, Any]
) -> None:
    """`[cuda]` alone leaves no node to the CPU."""
    reported = {"providers": ["cuda"], "input": given, **options}
    done = cuda.run("-c", INFER, str(pose), json.dumps(reported))
    assert done.status == 0, done.err
    assert json.loads(done.out.splitlines()[-1])["input"] == "tensor(uint8)"


CANDIDATES = {"most": 20, "min_score": 0.3}
ROWS, CELLS = 56, 84


def heads(cuda: Any) -> list[int]:
    """The bytes that came back from the device last, each batch's."""
    return [call["bytes"] for call in cuda.calls() if call.get("way") == "to host" and call["pinned"]][-9:]


def test_only_the_candidates_that_are_read_leave_the_device(cuda: Any, pose: Path) -> None:
    stage, copies = infer(cuda, pose, candidates=CANDIDATES)
    assert (stage["input"], stage["output"]) == ("tensor(uint8)", [ROWS, CANDIDATES["most"]])
    assert copies == [PIXELS] * 6 + [2 * PIXELS] * 3
    assert heads(cuda) == [4 * ROWS * 20] * 6 + [2 * 4 * ROWS * 20] * 3
    assert {"TopK", "GatherElements"}.issubset(stage["nodes"])
    assert not [kind for kind in stage["nodes"] if kind.startswith("Memcpy")]
    [line] = lines_of(stage, "candidates_folded")
    assert (line["most"], line["of"]) == (20, CELLS)
    assert [Path(line["copy"])] == list((cuda.folder / "cache" / "folded").iterdir())
    assert lines_of(stage, "model_opened")[0]["nodes"] == "CUDAExecutionProvider 100.0%"


def test_a_selection_is_recorded_as_a_cuda_graph(cuda: Any, pose: Path) -> None:
    graphs = {"options": {"cuda": {"enable_cuda_graph": True}}, "batch_sizes": [1, 2]}
    given = {"providers": ["cuda"], "candidates": CANDIDATES, **graphs}
    done = cuda.run("-c", INFER, str(pose), json.dumps(given))
    assert done.status == 0, done.err
    stage = json.loads(done.out.splitlines()[-1])
    assert not lines_of(stage, "runs_not_recorded")
    assert lines_of(stage, "candidates_folded")


def test_pictures_with_more_candidates_are_counted(cuda: Any, pose: Path) -> None:
    """Kernels that calculate nothing give scores of 0: with `min_score: 0` all candidates score enough."""
    stage, _ = infer(cuda, pose, candidates={"most": 20, "min_score": 0})
    assert stage["counts"] == 12
    [line] = lines_of(stage, "candidates_left_out")
    assert line["log_level"] == "warning"
    other, _ = infer(cuda, pose, candidates=CANDIDATES)
    assert (other["counts"], lines_of(other, "candidates_left_out")) == (0, [])


def test_unfoldable_selection_is_logged_pixels_folded(cuda: Any, pose: Path) -> None:
    stage, _ = infer(cuda, pose, candidates={"most": 100})
    [line] = lines_of(stage, "candidates_not_folded")
    assert line["why"] == "it has 84 candidates, no more than the 100 that are wanted"
    assert (stage["input"], stage["output"]) == ("tensor(uint8)", [ROWS, CELLS])


def test_graph_too_old_for_selection_folds_pixels(cuda: Any, pose: Path) -> None:
    model = onnx.load(pose)
    model.opset_import[0].version = 10
    onnx.save(model, pose)
    stage, _ = infer(cuda, pose, candidates=CANDIDATES)
    [line] = lines_of(stage, "candidates_not_folded")
    assert line["why"] == "its candidates cannot be selected: its opset is 10, expected 11 or later"
    assert (stage["input"], stage["output"]) == ("tensor(uint8)", [ROWS, CELLS])


def test_a_model_that_takes_pixels_runs_as_it_is(cuda: Any, pose: Path) -> None:
    from camgraph.stages.people.inference.contracts import InputSettings, read_contract
    from camgraph.stages.people.inference.model.pixel_folding import fold_pixels
    from camgraph.stages.people.inference.signatures import signature_of_file

    model = onnx.load(pose)
    fold_pixels(model.graph, read_contract(signature_of_file(pose), "pose", InputSettings()))
    own = pose.with_name("own.onnx")
    onnx.save(model, own)
    stage, copies = infer(cuda, own)
    [line] = lines_of(stage, "preprocessing_not_folded")
    assert line["why"] == "it takes uint8 RGB pictures as they are"
    assert copies == [PIXELS] * 6 + [2 * PIXELS] * 3
    assert not (cuda.folder / "cache").exists()


def test_the_cpu_gets_what_it_always_got(cuda: Any, pose: Path) -> None:
    for parts, providers in ((cuda.parts, ["cpu"]), ((), ["cuda", "cpu"])):
        cuda.parts = parts
        reported = json.dumps({"providers": providers})
        stage = json.loads(cuda.run("-c", INFER, str(pose), reported).out.splitlines()[-1])
        assert (stage["input"], stage["provider"]) == ("tensor(float)", "CPUExecutionProvider")
        assert not lines_of(stage, "preprocessing_folded")
        assert not lines_of(stage, "preprocessing_not_folded")
        assert not (cuda.folder / "cache").exists()
