"""Models whose boxes are distances from cells: NanoDet."""

from __future__ import annotations

from camgraph.stages.vision.decoding.distances import BINS, NANODET_STRIDES, cells_of_strides
from camgraph.stages.vision.recognition.reading import (
    COCO_CLASSES,
    Declared,
    Picture,
    Reading,
    class_names,
    known_classes,
    point_shape,
)
from camgraph.stages.vision.recognition.signature import Signature

_DISTANCES = 4 * BINS
_NANODET_PICTURE = Picture("bgr")


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
