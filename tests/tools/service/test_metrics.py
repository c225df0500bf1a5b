"""The metrics: as Prometheus reads them, as the page explains them, and as the alerts use them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tools.measuring.nvidia_smi import GpuLoad
from tools.service.metrics import exposition

ROOT = Path(__file__).parents[3]
EMPTY: dict[str, Any] = {
    "health": {"level": "healthy"},
    "totals": {"committed": 3},
    "uptime_s": 1.0,
    "memory_mb": 2.0,
    "troubles": [],
    "cameras": {},
    "stages": {},
    "processes": {},
}

GPU = GpuLoad(0, "NVIDIA L4", 1 << 30, 24 << 30, 0.5)


def names(text: str) -> set[str]:
    return set(re.findall(r"camgraph_[a-z_]+", text))


def exposed(status: dict[str, Any] | None = EMPTY, gpus: Sequence[GpuLoad] = (GPU,)) -> str:
    return exposition(status, gpus).decode()


def test_the_guide_names_all_of_them_and_no_others() -> None:
    text = (ROOT / "docs" / "service.md").read_text("utf-8")
    told = names("".join(line for line in text.splitlines() if line.startswith("| `camgraph_")))
    assert told == {line.split()[2] for line in exposed().splitlines() if line.startswith("# TYPE")}


def test_the_alerts_use_what_is_there() -> None:
    rules = yaml.safe_load((ROOT / "configs" / "deploy" / "prometheus-rules.yaml").read_text("utf-8"))
    (group,) = rules["groups"]
    used = names("".join(rule["expr"] for rule in group["rules"]))
    assert len(used) > 6
    assert used <= names(exposed())
    assert all(rule["annotations"]["summary"] for rule in group["rules"])


def test_without_an_answer_only_that_is_told() -> None:
    assert [line for line in exposed(None, ()).splitlines() if line[0] != "#"] == ["camgraph_up 0.0"]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "\x1b[2J", "\u202e", "é漢", "\ud800"])
def test_names_of_others_stay_one_label(name: str) -> None:
    sink = {"waiting": 1, "oldest_s": None, "dead_letters": 0, "given_up": 0}
    found = [
        sample
        for family in text_string_to_metric_families(exposed({**EMPTY, "outbox": {name: sink}}))
        for sample in family.samples
        if "sink" in sample.labels
    ]
    assert len(found) == 3, "an age that is not known is left out"
    assert len({sample.labels["sink"] for sample in found}) == 1
