"""Classifiers: one score for each class, and nothing else."""

from __future__ import annotations

from camgraph.stages.vision.recognition.reading import Declared, Reading, class_names, known_classes
from camgraph.stages.vision.recognition.signature import Signature


def read_classifier(signature: Signature, declared: Declared) -> Reading | None:
    """classes: as many rows as pictures. A batch whose size is open by another name is somebody else's rows."""
    port, picture = signature.only_output(2), signature.picture_port() or signature.window_port()
    if port is None or picture is None:
        return None
    is_declared = declared.format == "classes"
    rows, classes = port.shape
    if not isinstance(classes, int):
        classes = known_classes(signature, declared) if is_declared else None
    if classes is None or classes < 2 or not (is_declared or signature.task == "classify" or rows == picture.shape[0]):
        return None
    names = class_names(signature, classes)
    return Reading("classes", f"{len(names)} scores a picture", (port.name,), names, size=signature.picture_size())
