"""Remarks on a graph whose settings are correct, but perhaps not intended."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.graph import load_graph
from camgraph.pipeline.graph.remarks import remarks_on

GRAPH = """
version: 1
name: ward
cameras: {{room: {{url: "{url}"}}}}
stages:
  capture: {{use: capture}}
  out: {{use: sink_null, from: capture}}
"""
PLAIN = "rtsp://viewer:plum-garden@10.0.0.11/main"


def remarked(folder: Path, url: str, mode: int) -> list[str]:
    file = folder / "g.yaml"
    file.write_text(GRAPH.format(url=url))
    file.chmod(mode)
    return [remark for remark in remarks_on(load_graph(file, environ={"ROOM": "plum-garden"})) if "secrets" in remark]


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o666])
def test_a_password_that_others_may_read(tmp_path: Path, mode: int) -> None:
    [remark] = remarked(tmp_path, PLAIN, mode)
    assert f"has mode {mode:04o}: keep others out with `chmod 600" in remark
    assert "write passwords as `${NAME}`" in remark
    assert "plum" not in remark


@pytest.mark.parametrize(
    ("url", "mode"),
    [(PLAIN, 0o600), (PLAIN, 0o640), ("rtsp://viewer:${ROOM}@10.0.0.11/main", 0o644), ("rtsp://10.0.0.11/a", 0o644)],
    ids=["owner", "group", "variable", "none"],
)
def test_no_password_for_others_to_read(tmp_path: Path, url: str, mode: int) -> None:
    assert remarked(tmp_path, url, mode) == []
