"""The examples of docs/sinks.md are right, and so is the graph of the README.

Those of the page go into its graph, `room3.yaml`.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
import trustme
import yaml
import zmq
from camgraph_test_stages.incident_views import incident

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import stamp
from camgraph.stages.sinks.delivery.event_view import view_of
from camgraph.stages.sinks.delivery.selection import Selection
from camgraph.stages.sinks.sink_email import SinkEmailSettings
from camgraph.tools.assets import asset_path

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/sinks.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def yaml_in(page: str) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


BLOCKS = yaml_in(PAGE)
[WHOLE] = (block for block in BLOCKS if block.startswith("# room3.yaml"))
PARTS = [block for block in BLOCKS if not block.startswith("# ")]


def value_of(secret: str) -> str:
    """By the end of its name."""
    if secret.endswith("_url"):
        return "https://hooks.example.org/token"
    if secret.endswith("_chat"):
        return "https://api.telegram.org/bot1:planted/sendMessage?chat_id=-1"
    if secret.endswith("_curve"):
        return zmq.curve_keypair()[1].decode()
    return f"whsec_{base64.b64encode(bytes(32)).decode()}" if secret.endswith("_signing") else "planted"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """With the files that the examples name, and the secrets in the environment."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    authority = trustme.CA()
    both = authority.issue_cert("camgraph.test").private_key_and_cert_chain_pem
    for name in re.findall(r"[\w-]+\.(?:pem|key)", PAGE):
        (authority.cert_pem if "ca" in name.split(".")[0].split("-") else both).write_to_path(tmp_path / name)
    monkeypatch.setenv("ROOM3_PASSWORD", "planted")
    for secret in re.findall(r"\$\{secret:(\w+)\}", PAGE + README):
        monkeypatch.setenv(secret, value_of(secret))
    return tmp_path


@pytest.mark.parametrize("part", ["", *PARTS], ids=lambda part: part.split(":")[0].strip() or "whole")
@pytest.mark.processes
def test_an_example_is_right(folder, part) -> None:
    require_model()
    graph = folder / "room3.yaml"
    graph.write_text(WHOLE + part)
    assert load_plan(graph).graph == "ward"


def require_model() -> None:
    if not asset_path("movenet-multipose.onnx").exists():
        pytest.skip("`camgraph assets pull` has not brought the model")


@pytest.mark.parametrize(("page", "graph"), [(README, "ward.yaml"), (PAGE, "night.yaml")], ids=["README", "sinks"])
def test_the_nurse_gets_falls_and_lost_cameras_in_her_hours(folder, page, graph) -> None:
    require_model()
    for block in yaml_in(page):
        name = re.match(r"# ([\w.]+)\n", block)
        if name:
            (folder / name[1]).write_text(block)
    stages = [stage for process in load_plan(folder / graph).processes for stage in process.stages]
    [nurse] = (stage for stage in stages if stage.name == "nurse")
    settings = SinkEmailSettings.model_validate(dict(nurse.settings))
    assert settings.time_zone == "Europe/Berlin"
    assert settings.footage_folders == ["footage"]
    wanted = Selection(settings.only, settings.never, settings.time_zone)
    lost = {"type": "camgraph.camera.lost", "data": {"camera": "room-3", "phase": "start"}}
    assert wanted.fits(view_of(Event(stamp(), "1", "c", "start", json.dumps(lost).encode())))
    assert wanted.fits(incident("i", "start", camera="room-3"))
    assert not wanted.fits(incident("i", "end", camera="room-3"))
    # Only readers of `events` get those of cameras.
    assert yaml.safe_load((folder / graph).read_text())["stages"]["nurse"]["from"] == "events"
