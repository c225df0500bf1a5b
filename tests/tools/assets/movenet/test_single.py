"""Lightning and Thunder: our decoder for any batch against the one that they were published with."""

from __future__ import annotations

import cv2
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from camgraph.stages.vision.decoding.formats import Asked, detections_of
from camgraph.stages.vision.recognition import Signature, recognise
from camgraph.stages.vision.recognition.signature import Port
from camgraph.tools.assets.catalogue import find
from camgraph.tools.assets.movenet.single import HEADS, single_onnx
from camgraph.tools.assets.movenet.tfjs import ConversionError, read_graph
from camgraph.tools.assets.pull import check_sha256
from camgraph.tools.lab.published_decoder import published_decoder

CHANNELS = {"center": 1, "kpt_heatmap": 17, "kpt_regress": 34, "kpt_offset": 34}


@pytest.fixture(scope="module")
def model(single_files):
    name, side, files = single_files
    return single_onnx(*files, name=name, side=side)


def session(model, *, heads=False):
    """With ``heads`` they are outputs too."""
    opened = onnx.load_from_string(model)
    for name, channels in CHANNELS.items() if heads else ():
        opened.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", channels, None, None]))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(opened.SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def pictures(test_data, single_files):
    side = single_files[1]
    paths = sorted((test_data / "images" / "coco").glob("*.jpg"))
    return np.stack([cv2.resize(cv2.imread(str(path))[..., ::-1], (side, side)) for path in paths])


@pytest.mark.slow
def test_each_picture_of_a_batch_is_decoded_as_published(model, single_files, pictures):
    graph = read_graph(*single_files[2])
    ran = session(model, heads=True)
    points, *heads = ran.run(["points", *CHANNELS], {"images": pictures})
    assert points.shape == (len(pictures), 1, 17, 3)
    for number in range(len(pictures)):
        own = {name: head[number] for name, head in zip(CHANNELS, heads, strict=True)}
        np.testing.assert_allclose(points[number], published_decoder(graph, own, HEADS), rtol=0, atol=1e-6)


def test_heads_of_noise_are_decoded_as_published(model, single_files):
    """Cells at the border, equal ones, guesses outside the picture: what pictures of people seldom have."""
    graph, side = read_graph(*single_files[2]), single_files[1] // 4
    decoder = onnx.load_from_string(model)
    known = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", c, side, side])
        for name, c in CHANNELS.items()
    }
    nodes = [node for node in decoder.graph.node if node.name.startswith("decoder/") or node.name == "points"]
    alone = helper.make_graph(nodes, "decoder", list(known.values()), decoder.graph.output, decoder.graph.initializer)
    ran = session(helper.make_model(alone, opset_imports=decoder.opset_import, ir_version=8).SerializeToString())
    random = np.random.default_rng(5)
    heads = {name: random.normal(0, 8, (20, c, side, side)).astype(np.float32) for name, c in CHANNELS.items()}
    for name in ("center", "kpt_heatmap"):
        heads[name] = np.round(1 / (1 + np.exp(-heads[name])), 1)
    [points] = ran.run(["points"], heads)
    for number in range(20):
        published = published_decoder(graph, {name: head[number] for name, head in heads.items()}, HEADS)
        np.testing.assert_allclose(points[number], published, rtol=0, atol=1e-6)


def test_a_picture_gives_the_same_bits_in_every_batch(model, pictures):
    ran = session(model)
    [together] = ran.run(None, {"images": pictures})
    for number in range(len(pictures)):
        [alone] = ran.run(None, {"images": pictures[number : number + 1]})
        assert alone[0].tobytes() == together[number].tobytes()


def test_matches_catalogue_and_is_recognised(model, single_files):
    name, side, _ = single_files
    check_sha256(name, model, find(f"movenet-{name}.onnx").sha256)
    ran = session(model)
    ports = [
        tuple(Port(p.name, tuple(p.shape), p.type) for p in found) for found in (ran.get_inputs(), ran.get_outputs())
    ]
    reading = recognise(Signature(*ports, ran.get_modelmeta().custom_metadata_map))
    assert (reading.format, reading.keypoints, reading.size) == ("movenet_single", 17, (side, side))


def test_a_person_in_the_middle_is_found(model, pictures, single_files):
    """Of the four pictures, the one with the largest person: its points are confident, and within the picture."""
    side = single_files[1]
    [points] = session(model).run(None, {"images": pictures})
    best = max(points, key=lambda one: one[0, :, 2].mean())
    [score] = detections_of("movenet_single", [best], (side, side), Asked(min_score=0.3)).scores
    assert score > 0.45


def test_other_files_are_refused(single_files):
    name, side, (topology, weights) = single_files
    with pytest.raises(ConversionError, match="has no node StatefulPartitionedCall/Sigmoid_1: is it another model"):
        single_onnx(
            topology.replace(b'"StatefulPartitionedCall/Sigmoid_1"', b'"Renamed"'), weights, name=name, side=side
        )
    with pytest.raises(ConversionError, match="own size times a constant"):
        single_onnx(topology, weights, name=name, side=200)
