"""Published architectures, as the package `onnx` brings them, with weights at random: read, run and classified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Labels, Tensor
from camgraph.stages.people.classify import Classify
from camgraph.stages.people.infer import Infer
from camgraph.stages.people.inference.signatures import read_model
from camgraph.stages.vision.recognition import Declared

FOLDER = Path(onnx.__file__).parent / "backend/test/data/light"
"""Exported in 2019, without their weights. Two of them give (n, 1000, 1, 1), and densenet121 gives logits."""
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def write_weighted(name: str, path: Path) -> Path:
    """The model with numbers in place of its constants of one value."""
    model, chance = onnx.load(str(FOLDER / f"light_{name}.onnx")), np.random.default_rng(3)
    sizes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = sizes[node.input[0]].tolist()
        values = chance.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape) if len(shape) > 1 else np.ones(shape)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("name", ["densenet121", "squeezenet"])
def test_a_published_classifier_gives_onnxruntimes_scores(name: str, tmp_path: Path) -> None:
    path = write_weighted(name, tmp_path / "m.onnx")
    reading = read_model(path, Declared())
    assert (reading.format, len(reading.classes), reading.size) == ("classes", 1000, (224, 224))
    pixels = np.random.default_rng(1).integers(0, 256, (2, 224, 224, 3), np.uint8)
    items = [
        Tensor(stamp(seq), {"image": one[None]}, np.ones((1, 4), np.float32), (224, 224), (224, 224))
        for seq, one in enumerate(pixels)
    ]
    settings = {"model": str(path), "format": "classes", "input": {"mean": MEAN, "std": STD}}
    with opened(Infer, settings, folder=tmp_path) as infer, opened(Classify, {}, folder=tmp_path) as classify:
        inferred = feed(infer, items)
        labels = feed(classify, inferred)
    assert all(isinstance(one, Labels) and one.scores.sum() == pytest.approx(1, abs=1e-3) for one in labels)
    seen = [np.asarray(one.arrays_by_name[reading.outputs[0]]) for one in inferred if isinstance(one, Tensor)]
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    normalised = ((pixels / 255 - MEAN) / STD).astype(np.float32).transpose(0, 3, 1, 2)
    for rows, picture in zip(seen, normalised, strict=True):
        [wanted] = session.run(None, {session.get_inputs()[0].name: picture[None]})
        np.testing.assert_allclose(rows, wanted, rtol=1e-2, atol=1e-5)
    assert not np.allclose(*seen, rtol=1e-2, atol=1e-5), "the pictures differ"
