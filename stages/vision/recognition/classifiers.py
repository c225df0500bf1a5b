"""Classifiers: one score for each class, and nothing else."""

from __future__ import annotations

from camgraph.stages.vision.recognition.reading import Declared, Reading, class_names, known_classes, named_classes
from camgraph.stages.vision.recognition.signature import Port, Side, Signature

_ROW_OF_V7 = 7
_LEAST_WIDTH = 64
"""Fewer numbers do not tell people apart."""
_OF_IMAGENET = (1000, 21841, 21843)


def read_classifier(signature: Signature, declared: Declared) -> Reading | None:
    """classes: as many rows as pictures. Some classifiers give a picture of one pixel: (n, classes, 1, 1)."""
    port = signature.only_output(2) or signature.only_output(4)
    picture = signature.picture_port() or signature.window_port()
    if port is None or picture is None or port.shape[2:] not in ((), (1, 1)):
        return None
    is_declared = declared.format == "classes"
    rows, classes = port.shape[:2]
    if not isinstance(classes, int):
        classes = known_classes(signature, declared) if is_declared else None
    is_classifier = is_declared or signature.task == "classify" or _of_pictures(rows, classes, picture)
    if classes is None or classes < 2 or not is_classifier:
        return None
    names = class_names(signature, classes)
    return Reading("classes", _why(signature, classes), (port.name,), names, size=signature.picture_size())


def _of_pictures(rows: Side, classes: int | None, picture: Port) -> bool:
    """Whether there is a row for each picture.

    Some exporters give each open side a name of its own. Then the rows may also be people of all pictures, as those of
    YOLOv7 and of YOLO-NAS-Pose, whose pictures are uint8.
    """
    if rows == picture.shape[0]:
        return True
    are_open = not isinstance(rows, int) and not isinstance(picture.shape[0], int)
    return are_open and classes != _ROW_OF_V7 and picture.onnx_type != "tensor(uint8)"


def _why(signature: Signature, classes: int) -> str:
    if named_classes(signature) or classes < _LEAST_WIDTH or classes % 2 or classes in _OF_IMAGENET:
        return f"{classes} scores a picture"
    return f"{classes} numbers a picture without names: scores, or an appearance for `add_embeddings`"
