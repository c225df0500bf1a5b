"""The variables of the environment that a process is handed, and those that it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.system import redaction
from camgraph.pipeline.system.child_environment import HANDED_ON, handed_on, named

ROOT = Path(__file__).parents[3]


def test_the_list_of_what_is_handed_on_is_documented() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    assert [name for name in HANDED_ON if f"`{name}`" not in text] == []


def test_names_and_beginnings_of_names() -> None:
    environ = {"PATH": "1", "LC_ALL": "2", "PATHS": "3", "AWS_SECRET_ACCESS_KEY": "4", "http_proxy": "5"}
    assert handed_on(environ) == {"PATH": "1", "LC_ALL": "2"}
    assert named(["AWS_*"], environ) == {"AWS_SECRET_ACCESS_KEY": "4"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CAMGRAPH_DOOR", "x"),
        ("CAMGRAPH_DOOR_PASSWORD", "x"),
        ("PYTHON_PW", "x"),
        ("PYTHONISTA", "x"),
        ("XDG_PASSWORD", "x"),
        ("CUDA_TOKEN", "x"),
        ("NVIDIA_API_KEY", "x"),
        ("LC_CAMERA", "rtsp://viewer:geheim@h/x"),
        ("OV_DOOR", "{hidden}"),
        ("OV_DOOR", "a {hidden} z"),
    ],
)
def test_what_may_be_a_password_is_not_handed_on(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_any_known", None)
    redaction.hide(["Zq9 hidden"])
    assert handed_on({name: value.format(hidden="Zq9 hidden")}) == {}


@pytest.mark.parametrize(
    "name", ["CAMGRAPH_RUN_DIR", "PYTHONPATH", "PYTHONFAULTHANDLER", "CUDA_VISIBLE_DEVICES", "XDG_RUNTIME_DIR"]
)
def test_what_processes_need_is_handed_on(name: str) -> None:
    assert handed_on({name: "/x"}) == {name: "/x"}
