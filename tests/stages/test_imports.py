"""What the modules of sinks load: each sink has a process of its own, which pays for it in memory and at each start."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

DRAW_RULES = {"sink_api_frames", "sink_heatmap", "sink_video"}
SINKS = sorted(one.name for one in entry_points(group="camgraph.stages") if one.name.startswith("sink_"))
SCRIPT = """
import sys, importlib
importlib.import_module(sys.argv[1])
ours = {name: module for name, module in sys.modules.items() if name.startswith("camgraph.")}
print(*(name for name, module in ours.items() if not hasattr(module, "__path__")))
"""
MOST = 45
"""Modules, without the packages around them, which hold a docstring."""


@pytest.mark.parametrize("sink", [name for name in SINKS if name not in DRAW_RULES])
def test_a_sink_loads_no_rules_and_no_graphs(sink: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, f"camgraph.stages.sinks.{sink}"], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert f"camgraph.stages.sinks.{sink}" in loaded
    assert [
        name for name in loaded if name.startswith(("camgraph.pipeline.graph", "camgraph.stages.rules.language"))
    ] == []
    assert len(loaded) <= MOST
