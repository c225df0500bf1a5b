"""Limits that add up to more than a GPU has are said when the model is opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

OPEN = """
import json, sys
from pathlib import Path
from structlog.testing import capture_logs
from camgraph.pipeline.single_stage import opened
from camgraph.stages.people.infer import Infer

settings = {"model": sys.argv[1], "providers": ["cuda"], "options": {"cuda": {"gpu_mem_limit": sys.argv[2]}}}
with capture_logs() as logs, opened(Infer, settings, folder=Path(sys.argv[1]).parent, batch_max=8):
    print(json.dumps([line["why"] for line in logs if line["event"] == "gpu_mem_limits_exceed_gpu"]))
"""


@pytest.mark.parametrize(("limit", "fits"), [("2GB", True), ("4GB", False)])
def test_the_limit_of_each_size_of_batches_counts(cuda: Any, pose: Path, limit: str, fits: bool) -> None:
    """`batch: {max: 8}` is run in three sizes: 1, 2 and 8. The pretended GPU has 8 GiB."""
    done = cuda.run("-c", OPEN, str(pose), limit)
    assert done.status == 0, done.err
    answer = json.loads(done.out.splitlines()[-1])
    wanted = "4,000 MB for each of 3 sizes of batches are 12,000 MB, and GPU 0 has 8,590; set a smaller `gpu_mem_limit`"
    assert answer == [] if fits else [one.startswith(wanted) for one in answer] == [True], answer
