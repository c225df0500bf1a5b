"""The examples of docs/sinks.md are right: each goes into the graph of the page, `room3.yaml`."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
import trustme
import zmq

from pipeline.graph import load_plan
from tools.assets import asset_path

PAGE = (Path(__file__).parents[3] / "docs/sinks.md").read_text("utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
[WHOLE] = (block for block in BLOCKS if block.startswith("# room3.yaml"))
PARTS = [block for block in BLOCKS if not block.startswith("# ")]


def value_of(secret: str) -> str:
    """By the end of its name."""
    if secret.endswith("_url"):
        return "https://hooks.example.org/token"
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
    for secret in re.findall(r"\$\{secret:(\w+)\}", PAGE):
        monkeypatch.setenv(secret, value_of(secret))
    return tmp_path


@pytest.mark.parametrize("part", ["", *PARTS], ids=lambda part: part.split(":")[0].strip() or "whole")
def test_an_example_is_right(folder, part) -> None:
    if not asset_path("movenet-multipose.onnx").exists():
        pytest.skip("`camgraph assets pull` has not brought the model")
    graph = folder / "room3.yaml"
    graph.write_text(WHOLE + part)
    assert load_plan(graph).graph == "ward"
