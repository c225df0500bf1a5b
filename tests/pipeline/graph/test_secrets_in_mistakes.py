"""Mistakes in a graph are told without secrets, without values of variables, and without suggestions made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import load_graph

HEAD = """\
version: 1
cameras:
  hall: {url: "rtsp://h/x"}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture}
  tracks: {use: track, from: prepare}
"""
OF_VARIABLES = """\
  one: {use: rules, from: tracks, with: {rules: [{id: "${IT}", when: nose.y > 1}, {id: a, when: "${IT}"}]}}
  two: {use: rules, from: tracks, with: {rules: [{id: b, when: nose.y > 1, severity: "${IT}", use: "${IT}"}]}}
  three: {use: "${IT}", from: "${IT}"}
  four: {use: rules, from: tracks, with: {rules: "${IT}"}}
  five: {use: preprocess, from: capture, with: {size: "${IT}", fit: "${IT}"}}
  six: {use: sink_jsonl, from: "${IT}", with: {path: x, only: ["${IT}"]}}
"""
LITERAL = {
    "an octal number": "{name: ward, role: viewer, token:\n             0765432}",
    "a number to base 60": "{name: ward, role: viewer, token:\n             76:54:32}",
    "the key stands on the line before": "{name: ward, token:\n             765432-abc, role: vewer}",
    "beside another mistake": "{name: ward, token: 765432-abc, role: vewer}",
    "beside another mistake, with another name": "{name: ward, pwd: 765432-abc, role: vewer}",
}


def mistakes(folder: Path, text: str, value: str = "") -> str:
    """As `check` prints them."""
    (folder / "g.yaml").write_text(text)
    with pytest.raises(GraphError) as caught:
        load_graph(folder / "g.yaml", environ={"IT": value})
    return caught.value.with_excerpts


@pytest.mark.parametrize("value", ["Hunter2 geheim", "Hunter2-geheim", "captura", "viewr", "Hunter2" * 30])
def test_no_suggestion_is_made_of_the_value_of_a_variable(tmp_path: Path, value: str) -> None:
    text = mistakes(tmp_path, HEAD + OF_VARIABLES, value)
    assert text.count("${IT}") > 5
    assert "did you mean" not in text
    assert not [word for word in ("hunter2", "geheim", "captura", "viewr") if word in text.lower()]


def test_a_suggestion_for_what_stands_in_the_file_stays(tmp_path: Path) -> None:
    text = mistakes(tmp_path, HEAD.replace("preprocess", "preproces"))
    assert "did you mean `preprocess`?" in text


@pytest.mark.parametrize("case", LITERAL)
def test_a_secret_in_the_file_is_not_printed_with_a_mistake(tmp_path: Path, case: str) -> None:
    page = "  page:\n    use: serve\n    from: events\n    with:\n      tokens:\n        - "
    text = mistakes(tmp_path, f"{HEAD}{page}{LITERAL[case]}\n")
    assert "765432" not in text
    assert "76:54" not in text


def test_the_header_of_a_login_is_not_printed_with_a_mistake(tmp_path: Path) -> None:
    headers = '{Authorization: "X 765432", Y: 3}'
    hook = f'  hook: {{use: sink_webhook, from: events, with: {{url: "http://h", headers: {headers}}}}}\n'
    assert "765432" not in mistakes(tmp_path, HEAD + hook)
