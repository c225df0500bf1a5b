"""The changes of `camgraph model prepare` to a model, as it wrote them into the metadata. Values are Python literals.

camgraph.picture       {'order': 'rgb', 'scale': 1.0, 'align': 'corner', 'pad': 114, 'fit': 'letterbox'}
                                                                     how its picture is wanted now
                       {'order': 'rgb', 'scale': 1.0}                the same of a model that nobody could read then
camgraph.format        yolo_pose                                     what its outputs are
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from camgraph.stages.vision.letterbox import FitName
from camgraph.stages.vision.recognition.reading import FORMATS, Format, Picture
from camgraph.stages.vision.recognition.signature import Signature

PICTURE = "camgraph.picture"
FORMAT = "camgraph.format"
_WRITTEN = ({"order", "scale", "align", "pad", "fit"}, {"order", "scale", "align", "pad"}, {"order", "scale"})
_SCALES = (1e-6, 1e6)
"""Beyond these no pixel becomes a number that a model was trained with, and float32 overflows."""


def prepared_format(signature: Signature) -> Format | None:
    """The format that was written down; None if there is none that is known."""
    return next((name for name in FORMATS if name == signature.metadata.get(FORMAT)), None)


def prepared_picture(signature: Signature, usual: Picture) -> Picture:
    """The picture that the model wants: as written; if there is nothing or nonsense, as ``usual`` for its kind."""
    settings = signature.literal(PICTURE)
    if not isinstance(settings, dict) or set(settings) not in _WRITTEN:
        return usual
    settings = {"align": usual.align, "pad": usual.pad, "fit": usual.fit, **settings}
    return Picture(**settings) if _is_sensible(settings) else usual


def _is_sensible(settings: Mapping[str, object]) -> bool:
    scale, pad = settings["scale"], settings["pad"]
    return (
        settings["order"] in ("rgb", "bgr")
        and settings["align"] in ("centre", "corner")
        and settings["fit"] in get_args(FitName)
        and isinstance(scale, float)
        and _SCALES[0] <= scale <= _SCALES[1]
        and type(pad) is int
        and 0 <= pad <= 255
    )
