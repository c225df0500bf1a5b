"""The metrics: as Prometheus reads them, as the page explains them, and as the alerts use them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.tools.measuring.nvidia_smi import GpuLoad
from camgraph.tools.service.run.metrics import exposition

ROOT = Path(__file__).parents[4]
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
FULL: dict[str, Any] = {
    **EMPTY,
    "cameras": {
        "front": {
            "frames": 5,
            "fps": 2.0,
            "drops_by_reason": {"queue_full": 1},
            "skipped_by_reason": {"max_fps": 1},
            "age_ms": 20.0,
            "through_s": 0.1,
            "losses": 0,
            "state": "live",
        }
    },
    "actions": {"front": {"call": 1}},
    "counters": {"front": {"door": {"in": 1}}},
    "stages": {
        "infer": {
            "items": 5,
            "fps": 2.0,
            "queue": 0,
            "batch": 1.0,
            "busy": 0.5,
            "restarts": 0,
            "facts": {"model": "yolo.onnx", "provider": "CPUExecutionProvider"},
        }
    },
    "processes": {"infer.0": {"cpu_s": 1.0, "slots": 2}},
    "outbox": {"log": {"waiting": 1, "oldest_s": 3.0, "dead_letters": 0, "given_up": 0}},
    "durations": {
        "bounds_s": [0.01, 0.1],
        "stages": {"infer": {"counts": [2, 1, 1], "sum_s": 1.5}},
        "cameras": {"front": {"counts": [0, 0, 1], "sum_s": 1.5}},
    },
}
"""A value of every metric."""
DASHBOARD = json.loads((ROOT / "configs" / "deploy" / "grafana-dashboard.json").read_text("utf-8"))
RULES = ROOT / "configs" / "deploy" / "prometheus-rules.yaml"
OF_PROMETHEUS = {"instance", "job"}
"""Labels that Prometheus adds."""

GPU = GpuLoad(0, "NVIDIA L4", 1 << 30, 24 << 30, 0.5)


def names(text: str) -> set[str]:
    return set(re.findall(r"camgraph_[a-z_]+", text))


def exposed(status: dict[str, Any] | None = EMPTY, gpus: Sequence[GpuLoad] = (GPU,)) -> str:
    return exposition(None if status is None else RunStatus.from_json(status), gpus).decode()


METRIC = re.compile(r"\bcamgraph_\w+|\bup\b")


def metric_labels() -> dict[str, set[str]]:
    """The name of each sample -> its labels."""
    families = text_string_to_metric_families(exposed(FULL))
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


def dashboard_queries() -> Iterator[tuple[str, list[str]]]:
    """Each query, and the labels that its legend shows."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"], re.findall(r"{{(\w+)}}", target["legendFormat"])
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            of, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()  # type: ignore[union-attr]
            yield of, [label]


def check_query(query: str, shown: Iterable[str]) -> None:
    """Assert that each metric of a query is one of ours, and has the labels that are asked of it."""
    known = {**metric_labels(), "up": set()}
    used = METRIC.findall(query)
    assert used, query
    assert set(used) <= known.keys(), query
    for name, matchers in re.findall(r"(camgraph_\w+){(.*?)}", query):
        assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)) <= known[name] | OF_PROMETHEUS, query
    everywhere = set.intersection(*(known[name] for name in used)) | OF_PROMETHEUS
    grouped = [label for by in re.findall(r"\bby \((.*?)\)", query) for label in by.split(", ")]
    assert {*grouped, *shown} <= everywhere, query
    assert set(shown) <= set(grouped) or not grouped, query


def test_the_guide_names_all_of_them_and_no_others() -> None:
    text = (ROOT / "docs" / "service.md").read_text("utf-8")
    told = names("".join(line for line in text.splitlines() if line.startswith("| `camgraph_")))
    assert told == {line.split()[2] for line in exposed().splitlines() if line.startswith("# TYPE")}


def test_the_alerts_use_what_is_there() -> None:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    assert len(group["rules"]) > 6
    for rule in group["rules"]:
        said = rule["annotations"]["summary"]
        assert said
        check_query(rule["expr"], re.findall(r"\$labels\.(\w+)", said))


def test_the_dashboard_asks_for_what_is_there() -> None:
    queries = list(dashboard_queries())
    assert len(queries) > 30
    for query, shown in queries:
        check_query(query, shown)
    panels = [panel["title"] for panel in DASHBOARD["panels"]]
    assert [panel["id"] for panel in DASHBOARD["panels"]] == [*range(1, len(panels) + 1)]


def test_a_histogram_adds_up() -> None:
    of_stage = [line for line in exposed(FULL).splitlines() if line.startswith("camgraph_stage_call_seconds")]
    assert of_stage == [
        'camgraph_stage_call_seconds_bucket{le="0.01",stage="infer"} 2.0',
        'camgraph_stage_call_seconds_bucket{le="0.1",stage="infer"} 3.0',
        'camgraph_stage_call_seconds_bucket{le="+Inf",stage="infer"} 4.0',
        'camgraph_stage_call_seconds_count{stage="infer"} 4.0',
        'camgraph_stage_call_seconds_sum{stage="infer"} 1.5',
    ]


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


# ---- by Prometheus itself, where it is installed

PROMTOOL = shutil.which("promtool")
by_prometheus = pytest.mark.skipif(PROMTOOL is None, reason="promtool of Prometheus is not installed")


def promtool(*options: str | Path, text: str = "") -> str:
    """What it says. Fails if it finds a mistake."""
    done = subprocess.run(
        [str(PROMTOOL), *map(str, options)], input=text, capture_output=True, text=True, check=False, timeout=60
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


@by_prometheus
def test_prometheus_finds_no_mistake_in_the_metrics() -> None:
    assert promtool("check", "metrics", text=exposed(FULL)) == ""


@by_prometheus
def test_prometheus_understands_alerts_and_dashboard(tmp_path: Path) -> None:
    assert "7 rules found" in promtool("check", "rules", RULES)
    queries = [query.replace("$__rate_interval", "5m") for query, _ in dashboard_queries()]
    rules = [{"record": f"asked:{n}", "expr": query} for n, query in enumerate(queries)]
    asked = tmp_path / "rules.json"
    asked.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(queries)} rules found" in promtool("check", "rules", asked)


CALM = {
    'up{job="camgraph"}': "1x60",
    "camgraph_up": "1x60",
    'camgraph_health{level="down"}': "0x60",
    'camgraph_camera_state{camera="a",state="lost"}': "0x60",
    'camgraph_camera_state{camera="a",state="paused"}': "1x60",
    'camgraph_camera_dropped_frames_total{camera="a",reason="damaged"}': "0+10x60",
    'camgraph_camera_frames_total{camera="a"}': "0+100x60",
    'camgraph_sink_oldest_event_seconds{sink="log"}': "300x60",
    'camgraph_sink_dead_letters{sink="log"}': "7x60",
    'camgraph_sink_given_up_events_total{sink="log"}': "7x60",
    'camgraph_stage_restarts_total{stage="infer"}': "3x60",
}
ALERTS = [
    ("CamgraphDown", {'camgraph_health{level="down"}': "1x60"}, {"level": "down"}),
    ("CamgraphDown", {"camgraph_up": "0x60"}, {}),
    ("CamgraphServiceAbsent", {'up{job="camgraph"}': "0x60"}, {"job": "camgraph"}),
    ("CameraWithoutPicture", {'camgraph_camera_state{camera="a",state="lost"}': "1x60"}, {"camera": "a"}),
    (
        "CameraDropsFrames",
        {'camgraph_camera_dropped_frames_total{camera="a",reason="queue_full"}': "0+11x60"},
        {"camera": "a"},
    ),
    ("EventsWait", {'camgraph_sink_oldest_event_seconds{sink="log"}': "301x60"}, {"sink": "log"}),
    ("EventsNotDelivered", {'camgraph_sink_dead_letters{sink="log"}': "7x10 8x50"}, {"sink": "log"}),
    ("EventsNotDelivered", {'camgraph_sink_given_up_events_total{sink="log"}': "7x10 8x50"}, {"sink": "log"}),
    ("ProcessesRestart", {'camgraph_stage_restarts_total{stage="infer"}': "0+1x60"}, {"stage": "infer"}),
]


@by_prometheus
@pytest.mark.parametrize(("alert", "trouble", "labels"), ALERTS)
def test_an_alert_rings_for_its_trouble_alone(
    tmp_path: Path, alert: str, trouble: dict[str, str], labels: dict[str, str]
) -> None:
    rules = yaml.safe_load(RULES.read_text("utf-8"))
    for rule in rules["groups"][0]["rules"]:
        del rule["annotations"]
    severities = {rule["alert"]: rule["labels"]["severity"] for rule in rules["groups"][0]["rules"]}
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    rings = {"exp_labels": {**labels, "severity": severities[alert]}}
    expected = [
        {"eval_time": "30m", "alertname": one, "exp_alerts": [rings] if one == alert else []} for one in severities
    ]
    series = [{"series": name, "values": values} for name, values in {**CALM, **trouble}.items()]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": expected}
    file = tmp_path / "tests.json"
    file.write_text(json.dumps({"rule_files": ["rules.json"], "evaluation_interval": "1m", "tests": [test]}))
    assert "SUCCESS" in promtool("test", "rules", file)
