"""Pose models for pictures of one person each: heat maps, and SimCC's maps of one axis."""

from __future__ import annotations

from camgraph.stages.vision.recognition.reading import MOST_POINTS, PERSON, Declared, Reading, point_shape
from camgraph.stages.vision.recognition.signature import Port, Side, Signature

_PARTS = 2
"""Of a pixel, in SimCC's maps."""
_PIXELS = 4
"""Along a side of a heat map's cell."""
_COCO_POINTS = 17
_SIMCC = ("simcc_x", "simcc_y")


def read_simcc(signature: Signature, declared: Declared) -> Reading | None:
    """simcc: two outputs of one row for each keypoint, by their names or as twice the sides of the picture."""
    ports = _axes(signature, declared)
    if ports is None:
        return None
    x, y = ports
    points = _points(x.shape[1], signature, declared)
    if points is None or not _may_agree(x.shape[1], y.shape[1]):
        return None
    why = f"a row along x and one along y for each of {points} points"
    return Reading("simcc", why, (x.name, y.name), PERSON, points, 3, signature.picture_size())


def _axes(signature: Signature, declared: Declared) -> tuple[Port, Port] | None:
    """The outputs for x and for y; of a square picture, nothing but their names and the declared order tells them."""
    if len(signature.outputs) != 2 or any(len(port.shape) != 3 for port in signature.outputs):
        return None
    first, second = signature.outputs
    by_name = {port.name: port for port in signature.outputs}
    if set(by_name) == set(_SIMCC):
        return by_name[_SIMCC[0]], by_name[_SIMCC[1]]
    size = signature.picture_size()
    if size is not None and size[0] != size[1]:
        wanted = _PARTS * size[0], _PARTS * size[1]
        for x, y in ((first, second), (second, first)):
            if (x.shape[2], y.shape[2]) == wanted:
                return x, y
    return (first, second) if declared.format == "simcc" else None


def read_heatmaps(signature: Signature, declared: Declared) -> Reading | None:
    """heatmaps: one map for each keypoint, in cells of four pixels.

    Maps of classes or masks look alike: without a known number of keypoints, 17 maps are those of COCO's.
    """
    port, size = signature.only_output(4), signature.picture_size()
    if port is None:
        return None
    _, maps, height, width = port.shape
    if declared.format != "heatmaps":
        is_fourth = size is not None and (width, height) == (size[0] / _PIXELS, size[1] / _PIXELS)
        known = point_shape(signature, declared) or (_COCO_POINTS, 3)
        if not is_fourth or maps != known[0] or signature.task not in (None, "pose"):
            return None
    points = _points(maps, signature, declared)
    if points is None:
        return None
    why = f"a map of {width or 'any'} x {height or 'any'} cells for each of {points} points"
    return Reading("heatmaps", why, (port.name,), PERSON, points, 3, size)


def _points(side: Side, signature: Signature, declared: Declared) -> int | None:
    """How many keypoints there are; None if none or too many."""
    shape = point_shape(signature, declared)
    points = side if isinstance(side, int) else shape[0] if shape else _COCO_POINTS
    return points if 1 <= points <= MOST_POINTS else None


def _may_agree(one: Side, other: Side) -> bool:
    return one == other or not (isinstance(one, int) and isinstance(other, int))
