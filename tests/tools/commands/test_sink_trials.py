from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stages.events import CloudEvent
from tools.cli import main

GOOD = {"command": ["sh", "-c", "cat > got.json"], "only": {"rule": "fall"}}
BAD = {"command": ["sh", "-c", "echo no door; exit 4"], "tries": 1}
GRAPH = {
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


def test_only_the_named_ones_are_tried(graph: Path) -> None:
    assert sinks_test(str(graph), "good").exit_code == 0
    result = sinks_test(str(graph), "god")
    assert result.exit_code == 2
    assert "did you mean `good`" in result.output
