"""The benchmark of the way through a GPU, on the pretended one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from camgraph.tools.lab.benchmarks.gpu_path import WAYS


@pytest.mark.lab
@pytest.mark.timeout(600)
def test_each_way_is_measured(cuda: Any, pose: Path) -> None:
    few = ["--cameras", "2", "--rate", "10", "--rounds", "1", "--seconds", "3", "--device-ms", "5"]
    with cuda.start("-m", "camgraph.tools.lab.benchmarks.gpu_path", "--model", str(pose), *few) as process:
        out, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("| 2 x")]
    assert [row[:2] for row in rows] == [["2 x 10/s", way] for way in WAYS]
    for row in rows:
        fps, share, cpu_ms = float(row[2]), float(row[3].split()[0]), float(row[7].split()[0])
        assert 0 < fps < 40, out
        assert share == pytest.approx(fps / 20, abs=0.03)
        assert cpu_ms > 0
