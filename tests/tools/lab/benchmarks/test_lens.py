from __future__ import annotations

import numpy as np
import pytest

from camgraph.stages.rules.language.lens import Lens
from camgraph.tools.lab.benchmarks.lens import CAMERAS, learnt, seen

pytestmark = pytest.mark.slow


def test_known_and_learnt_lenses_make_people_upright_everywhere() -> None:
    camera = CAMERAS[-1]
    known = Lens.of(camera.tilt_deg, camera.fov_deg, camera.size[0])
    found = [seen(camera, range(3, 6), lens) for lens in (None, known, learnt(camera, range(1000, 1003)))]
    leans = [np.median(one.leans) for one in found]
    assert max(leans[1:]) < leans[0] / 3
    spreads = [np.subtract(*np.percentile(one.torsos, [95, 5])) for one in found]
    assert max(spreads[1:]) < 0.8 * spreads[0]
