"""Classifiers: one score for each class, and nothing else."""

from __future__ import annotations

from stages.vision.recognition.reading import Reading, Stated, class_names
from stages.vision.recognition.signature import Signature


def read_classifier(signature: Signature, stated: Stated) -> Reading | None:
    """classes: as many rows as pictures. A batch whose size is open by another name is somebody else's rows."""
    port, picture = signature.only_output(2), signature.picture_port()
    if port is None or picture is None or not isinstance(port.shape[1], int) or port.shape[1] < 2:
        return None
    said = signature.task == "classify" or stated.format == "classes"
    if not said and port.shape[0] != picture.shape[0]:
        return None
    names = class_names(signature, port.shape[1])
    return Reading("classes", f"{len(names)} scores a picture", (port.name,), names, size=signature.picture_size())
