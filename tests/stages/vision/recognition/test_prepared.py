"""What `camgraph model prepare` wrote into a model, and what nobody believes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from camgraph.stages.vision.recognition import Picture, Port, Signature, recognise
from camgraph.stages.vision.recognition.prepared import prepared_picture

SAID = {"order": "'bgr'", "scale": "0.5", "align": "'corner'", "pad": "127"}


def prepared(**changed: str) -> Signature:
    text = ", ".join(f"'{key}': {value}" for key, value in (SAID | changed).items())
    images, rows = (Port(name, shape, "tensor(float)") for name, shape in (("i", (1, 3, 64, 64)), ("o", (1, 56, 84))))
    return Signature((images,), (rows,), {"camgraph.picture": f"{{{text}}}"})


def test_what_was_written_down_holds() -> None:
    assert recognise(prepared()).picture == Picture("bgr", 0.5, "corner", 127)


def test_unknown_alignment_is_that_of_the_format() -> None:
    signature = replace(prepared(), metadata={"camgraph.picture": "{'order': 'rgb', 'scale': 1.0}"})
    assert prepared_picture(signature, Picture("bgr", 255.0, "corner", 127)) == Picture("rgb", 1.0, "corner", 127)


@pytest.mark.parametrize(
    "changed",
    [
        {"scale": "1e999"},
        {"scale": "-1e999"},
        {"scale": "1e38"},
        {"scale": "1e-40"},
        {"scale": "0.0"},
        {"scale": "True"},
        {"pad": "True"},
        {"pad": "256"},
        {"pad": "1.5"},
        {"order": "['rgb']"},
        {"align": "'left'"},
        {"more": "1"},
    ],
    ids=str,
)
def test_nonsense_is_as_nothing(changed: dict[str, str]) -> None:
    usual = Picture("bgr", 1.0, "corner")
    assert prepared_picture(prepared(**changed), usual) == usual
    assert recognise(prepared(**changed)).picture == Picture()
