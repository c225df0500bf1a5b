from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import cv2
import pytest
from camgraph_test_stages.brokers import or_skip, serving
from click.testing import CliRunner, Result
from paho.mqtt import publish, subscribe
from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from camgraph.stages.events import CloudEvent
from camgraph.tools.cli import main
from camgraph.tools.lab.broker_servers import mosquitto

GOOD = {"command": ["sh", "-c", "cat > got.json"], "only": {"rule": "fall"}}
BAD = {"command": ["sh", "-c", "echo no door; exit 4"], "tries": 1}
GRAPH: dict[str, Any] = {
    "version": 1,
    "cameras": {"front": {"frames": 1}},
    "stages": {
        "count": {"use": "count_source"},
        "emit": {"use": "emit", "from": "count"},
        "good": {"use": "sink_command", "from": "emit", "with": GOOD},
        "bad": {"use": "sink_command", "from": "emit", "with": BAD},
        "log": {"use": "sink_jsonl", "from": "emit", "with": {"path": "events.jsonl"}},
    },
}


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "g.yaml"
    path.write_text(json.dumps(GRAPH))
    return path


def sinks_test(*words: str) -> Result:
    return CliRunner().invoke(main, ["sinks", "test", *words])


def test_each_sink_says_whether_the_event_arrived(graph: Path) -> None:
    result = sinks_test(str(graph))
    assert result.exit_code == 1
    good, bad, log = result.output.splitlines()
    assert good.startswith("good  sink_command  arrived, ")
    assert bad == "bad   sink_command  did NOT arrive: sh: ended with status 4: no door"
    assert "not tried" in log
    event = CloudEvent.model_validate_json((graph.parent / "got.json").read_bytes())
    assert (event.subject, event.data.action, event.data.test) == ("front", "test", True)
    assert {path.name for path in graph.parent.iterdir()} <= {"g.yaml", "got.json", "state"}


def test_a_trial_leaves_the_states_of_a_run_alone(graph: Path) -> None:
    with serving(or_skip(lambda: mosquitto(graph.parent))) as broker:
        options: dict[str, Any] = {"port": broker.port, "qos": 1, "retain": True}
        for topic in ("camgraph/g/front/state", "camgraph/g/yard/state"):
            publish.single(topic, "as it is", **options)
        publish.single("camgraph/g/availability", "online", **options)
        gone = threading.Event()
        run = Client(CallbackAPIVersion.VERSION2, "camgraph-g-house", protocol=MQTTv5, reconnect_on_failure=False)
        run.on_disconnect = lambda *_: gone.set()
        run.connect("127.0.0.1", broker.port)
        run.loop_start()
        settings = {"address": f"mqtt://127.0.0.1:{broker.port}", "cameras": ["front"], "home_assistant": True}
        house = {"use": "sink_mqtt", "from": "emit", "with": settings}
        graph.write_text(json.dumps({**GRAPH, "stages": {**GRAPH["stages"], "house": house}}))
        result = sinks_test(str(graph), "house")
        assert "house  sink_mqtt  arrived" in result.output
        found = subscribe.simple("camgraph/g/+/state", port=broker.port, msg_count=2, qos=1)
        assert {one.payload for one in found} == {b"as it is"}
        known = subscribe.simple("camgraph/g/availability", port=broker.port, qos=1)
        assert known.payload == b"online"
        assert not gone.is_set(), "the run is thrown off the broker"
        run.disconnect()
        run.loop_stop()


def test_only_the_named_ones_are_tried(graph: Path) -> None:
    assert sinks_test(str(graph), "good").exit_code == 0
    result = sinks_test(str(graph), "god")
    assert result.exit_code == 2
    assert "did you mean `good`" in result.output


def with_rules(path: Path, **more: object) -> None:
    """A graph with the rules `fall` and `walking`, and a program that keeps the event and its picture."""
    program = 'cat > got.json; cp "$CAMGRAPH_SNAPSHOT" got.jpg || true'
    stages = {
        "count": {"use": "count_source"},
        "tracks": {"use": "stands", "from": "count"},
        "actions": {"use": "rules", "from": "tracks", "with": {"rules": [{"use": "fall"}, {"use": "walking"}]}},
        "siren": {"use": "sink_command", "from": "actions", "with": {"command": ["sh", "-c", program], **more}},
    }
    path.write_text(json.dumps({"version": 1, "cameras": {"front": {"frames": 1}}, "stages": stages}))


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({}, []),
        ({"only": {"rule": "fall", "phase": "end"}}, ["its filters leave out, at this time: walking on front"]),
        (
            {"only": {"camera": "front"}, "never": {"kind": "incident"}},
            ["its filters leave out all incidents at this time"],
        ),
    ],
)
def test_what_filters_leave_out_is_told(graph: Path, settings: dict[str, object], lines: list[str]) -> None:
    with_rules(graph, **settings)
    result = sinks_test(str(graph))
    assert result.exit_code == 0
    assert [line.strip() for line in result.output.splitlines()[1:]] == lines


def test_a_drawing_is_tried_if_the_graph_keeps_pictures(graph: Path) -> None:
    with_rules(graph)
    values = json.loads(graph.read_text())
    values["stages"]["footage"] = {"use": "sink_footage", "from": "actions", "with": {"path": "footage"}}
    graph.write_text(json.dumps(values))
    assert sinks_test(str(graph)).exit_code == 0
    assert cv2.imread(str(graph.parent / "got.jpg")).shape == (360, 640, 3)
    assert list(graph.parent.glob(".camgraph-test-*")) == []
