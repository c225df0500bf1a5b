"""Models whose boxes are distances from cells: NanoDet, PicoDet, and SCRFD, which finds faces."""

from __future__ import annotations

from camgraph.stages.vision.decoding.distances import (
    ANCHORS,
    BINS,
    FACE_POINTS,
    NANODET_STRIDES,
    PICODET_STRIDES,
    cells_of_strides,
)
from camgraph.stages.vision.decoding.yolo_heads import STRIDES
from camgraph.stages.vision.recognition.reading import (
    COCO_CLASSES,
    Declared,
    Picture,
    Reading,
    class_names,
    known_classes,
    point_shape,
)
from camgraph.stages.vision.recognition.signature import Port, Signature

_DISTANCES = 4 * BINS
_NANODET_PICTURE = Picture("bgr", fit="stretch")
_PICODET_PICTURE = Picture("rgb", fit="stretch")
_PICODET_OUTPUTS = 2 * len(PICODET_STRIDES)
_FACE = ("face",)
_SCRFD_PICTURE = Picture("rgb", align="corner", pad=0)
_SCRFD_SIDES = (1, 4, 2 * FACE_POINTS)
_SCRFD_OUTPUTS = len(_SCRFD_SIDES) * len(STRIDES)


def read_nanodet(signature: Signature, declared: Declared) -> Reading | None:
    """nanodet: scores and 32 logits for each cell of a picture of known size; as declared, of any."""
    port, size, is_declared = signature.only_output(3), signature.picture_size(), declared.format == "nanodet"
    if port is None or not (is_declared or (signature.task is None and point_shape(signature, declared) is None)):
        return None
    _, rows, columns = port.shape
    known = known_classes(signature, declared)
    classes = columns - _DISTANCES if isinstance(columns, int) else known if is_declared else None
    if classes is None or classes < 1 or not (is_declared or classes == (known or len(COCO_CLASSES))):
        return None
    if size is None or not isinstance(rows, int):
        fits, why = is_declared, "as declared"
    else:
        fits = rows in {cells_of_strides(*size, strides) for strides in NANODET_STRIDES}
        why = f"{rows} rows, one for each cell of {size[0]} x {size[1]}, of {classes} scores and {_DISTANCES} logits"
    names = class_names(signature, classes)
    return Reading("nanodet", why, (port.name,), names, size=size, picture=_NANODET_PICTURE) if fits else None


def read_picodet(signature: Signature, declared: Declared) -> Reading | None:
    """picodet: for each of four strides scores, and 32 logits for each of its cells, in pictures of known size."""
    size, outputs = signature.picture_size(), signature.outputs
    if size is None or len(outputs) != _PICODET_OUTPUTS or any(len(port.shape) != 3 for port in outputs):
        return None
    logits = [port for port in outputs if port.shape[-1] == _DISTANCES]
    scores = [port for port in outputs if port not in logits]
    classes = {port.shape[-1] for port in scores}
    if len(logits) != len(scores) or len(classes) != 1:
        return None
    cells = [cells_of_strides(*size, (stride,)) for stride in PICODET_STRIDES]
    groups = [_finest_first(ports) for ports in (scores, logits)]
    if any([port.shape[-2] for port in ports] != cells for ports in groups):
        return None
    count = classes.pop()
    if not isinstance(count, int):
        return None
    names, why = class_names(signature, count), f"{count} scores and {_DISTANCES} logits for each cell of four strides"
    ordered = tuple(port.name for ports in groups for port in ports)
    return Reading("picodet", why, ordered, names, size=size, picture=_PICODET_PICTURE)


def read_scrfd(signature: Signature, declared: Declared) -> Reading | None:
    """scrfd: scores, boxes and points of three strides; with an axis for pictures, or without one as InsightFace does.

    The order of the strides is that of their numbers of rows, or that of the file if the model leaves these open.
    """
    axes = {len(port.shape) for port in signature.outputs}
    if len(signature.outputs) != _SCRFD_OUTPUTS or axes not in ({2}, {3}):
        return None
    groups = _by_last_side(signature, is_declared=declared.format == "scrfd")
    size = signature.picture_size()
    if groups is None or not all(_are_of_strides(ports, size) for ports in groups):
        return None
    names = tuple(port.name for ports in groups for port in ports)
    why = f"scores, boxes and {FACE_POINTS} points of three strides"
    return Reading("scrfd", why, names, _FACE, FACE_POINTS, 3, size, _SCRFD_PICTURE, alone=axes == {2})


def _by_last_side(signature: Signature, *, is_declared: bool) -> list[list[Port]] | None:
    """Scores, boxes and points, of each the finest stride first."""
    groups = [[port for port in signature.outputs if port.shape[-1] == side] for side in _SCRFD_SIDES]
    each = len(STRIDES)
    if any(len(ports) != each for ports in groups):
        are_open = not any(isinstance(port.shape[-1], int) for port in signature.outputs)
        if not (is_declared and are_open):
            return None
        groups = [list(signature.outputs[begin : begin + each]) for begin in range(0, _SCRFD_OUTPUTS, each)]
    return [_finest_first(ports) for ports in groups]


def _finest_first(ports: list[Port]) -> list[Port]:
    rows = [port.shape[-2] for port in ports]
    numbers = [side for side in rows if isinstance(side, int)]
    if len(numbers) < len(rows):
        return ports
    return [port for _, port in sorted(zip(numbers, ports, strict=True), key=lambda pair: -pair[0])]


def _are_of_strides(ports: list[Port], size: tuple[int, int] | None) -> bool:
    """Whether each may have two rows for each cell of its stride."""
    return size is None or all(
        not isinstance(port.shape[-2], int) or port.shape[-2] == ANCHORS * cells_of_strides(*size, (stride,))
        for port, stride in zip(ports, STRIDES, strict=True)
    )
