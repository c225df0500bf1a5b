from __future__ import annotations

import numpy as np

from stages.vision.rules.lens import convergence
from tools.benchmarks.lens import CAMERAS, leans, learnt


def test_a_known_and_a_learnt_lens_make_people_upright() -> None:
    camera = CAMERAS[-1]
    known = convergence(camera.tilt_deg, camera.fov_deg, camera.size[0])
    found = [np.median(leans(camera, range(1), c)) for c in (0.0, known, learnt(camera, range(1, 2)))]
    assert max(found[1:]) < found[0] / 3
