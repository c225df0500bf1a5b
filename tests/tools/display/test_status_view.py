"""Answers of runs that say something else than runs do: they are refused in words, or can be shown."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.tools.display.live_table import render

LIES: list[dict[str, Any]] = [
    {"cameras": 7},
    {"cameras": {"a": 7}},
    {"cameras": {"a": {"fps": "fast"}}},
    {"cameras": {"a": {"frames": -(10**400)}}},
    {"cameras": {"a": {"state": ["live"], "since_s": {}}}},
    {"cameras": {"a": {"state": "lost", "since_s": 1e300}}},
    {"cameras": {"a": {"age_ms": float("inf")}}},
    {"stages": ["a"]},
    {"stages": {"a": {"busy": None, "batch": "x"}}},
    {"events": {"time": 3}},
    {"events": [{"people": 7}]},
    {"events": [{"people": ["x"], "time": 7}]},
    {"uptime_s": []},
    {"uptime_s": 1e300},
    {"memory_mb": float("nan")},
    {"progress": {"done": 1e308}},
    {"progress": {"done": 0.5, "left_s": 1e300}},
    {"health": {"level": []}},
    {"health": "healthy"},
    {"totals": {"frames": {}}},
    {"troubles": [{"where": 1}]},
    {"limit": "text"},
    {"switches": {"a": "\x1b]0;x\x07"}},
    {"counters": {"a": {"b": {"inside": "c"}}}},
    {"outbox": {"log": {"waiting": "many"}}},
    {"outbox": {"log": {"oldest_s": 1e300, "waiting": 3}}},
]


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_in_words_or_shown(lie: dict[str, Any]) -> None:
    try:
        status = RunStatus.from_json(lie)
    except UserError:
        with pytest.raises(UserError, match="the answer of the run cannot be read"):
            RunStatus.from_json(lie)
    else:
        Console(file=io.StringIO(), width=100).print(render(status))
