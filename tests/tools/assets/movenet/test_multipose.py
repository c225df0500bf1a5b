"""MultiPose itself: the conversion against a reference, the decoder against the one that it was published with."""

from __future__ import annotations

import cv2
import numpy as np
import onnxruntime as ort
import pytest

from camgraph.stages.vision.decoding.movenet import HEAD_CHANNELS, MIN_KEYPOINT, decode_multipose
from camgraph.tools.assets.movenet.multipose import multipose_onnx
from camgraph.tools.assets.movenet.tfjs import ConversionError, read_graph
from camgraph.tools.lab.published_decoder import published_decoder

pytestmark = pytest.mark.slow

KEYPOINTS = 17
BATCHES = [(3, (256, 256)), (1, (416, 640)), (1, (576, 768))]


def session(model):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def ours(multipose_files):
    return session(multipose_onnx(*multipose_files))


def heads_of(model, pictures):
    return dict(zip(HEAD_CHANNELS, model.run(list(HEAD_CHANNELS), {"images": pictures}), strict=True))


def pictures(folder, size):
    """The real pictures, RGB, stretched to (rows, columns)."""
    paths = sorted(folder.rglob("*.jpg"))
    return np.stack([cv2.resize(cv2.imread(str(path))[..., ::-1], size[::-1]) for path in paths])


@pytest.mark.parametrize(("batch", "size"), BATCHES)
def test_heads_agree_with_the_reference(ours, test_data, batch, size):
    reference = session(str(test_data / "models" / "multipose_heads.onnx"))
    some = pictures(test_data / "images" / "coco", size)[:batch]
    expected = heads_of(reference, some)
    for name, head in heads_of(ours, some).items():
        np.testing.assert_allclose(head, expected[name], rtol=0, atol=3e-4, err_msg=name)


def test_a_picture_gives_the_same_bits_in_every_batch(ours, test_data):
    some = pictures(test_data / "images" / "coco", (256, 320))[:3]
    together = heads_of(ours, some)
    for i in range(len(some)):
        for name, head in heads_of(ours, some[i : i + 1]).items():
            assert head[0].tobytes() == together[name][i].tobytes()


def test_people_agree_with_the_published_decoder(ours, multipose_files, test_data):
    """Each of its six, but for the confidences that it takes from other people in the same cell."""
    graph = read_graph(*multipose_files)
    compared = same = 0
    for picture in pictures(test_data / "images" / "coco", (416, 640)):
        heads = {name: head[0] for name, head in heads_of(ours, picture[None]).items()}
        published = published_decoder(graph, heads)
        poses = decode_multipose(heads, min_score=1e-3, iou=1.0, min_keypoint=MIN_KEYPOINT)
        scale = np.array((640, 416), np.float32)
        for row in published[published[:, 55] > 0.1]:
            box = row[[52, 51, 54, 53]] * np.tile(scale, 2)
            ours_at = int(np.abs(poses.boxes_xyxy - box).max(axis=1).argmin())
            keypoints = row[:51].reshape(17, 3)
            np.testing.assert_allclose(poses.boxes_xyxy[ours_at], box, atol=1e-3)
            np.testing.assert_allclose(poses.keypoints[ours_at, :, :2], keypoints[:, 1::-1] * scale, atol=1e-3)
            assert (poses.keypoints[ours_at, :, 2] <= keypoints[:, 2] + 1e-5).all()
            compared += KEYPOINTS
            same += int((np.abs(poses.keypoints[ours_at, :, 2] - keypoints[:, 2]) < 1e-5).sum())
    assert compared >= 10 * KEYPOINTS
    assert same >= 0.8 * compared


def test_other_files_are_refused(multipose_files):
    topology, weights = multipose_files
    with pytest.raises(ConversionError, match="has no node StatefulPartitionedCall/Sigmoid: is it another model"):
        multipose_onnx(topology.replace(b'"StatefulPartitionedCall/Sigmoid"', b'"Renamed"'), weights)
    with pytest.raises(ConversionError, match="ends within"):
        multipose_onnx(topology, weights[:-2])
