"""A message about a setting that holds a secret never shows what stands there, however wrong that is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import parse_graph
from camgraph.pipeline.graph.yaml_reader import holds_secret
from camgraph.pipeline.registry import find_stage, stage_names

PLANTED = "918273645"
NO_SECRETS = {("serve", "key"), ("sink_command", "pass_environment"), ("sink_zmq", "curve_server_key")}
"""A file, names of variables, and a public key."""
SECRETS = [
    (stage, setting)
    for stage in stage_names("camgraph")
    for setting in find_stage(stage).settings_type.model_fields
    if holds_secret((setting,)) and (stage, setting) not in NO_SECRETS
]
WRONG = {
    "text": PLANTED,
    "text-in-lines": f"{PLANTED}\nand more",
    "a number": int(PLANTED),
    "a list": [PLANTED],
    "a list of numbers": [int(PLANTED)],
    "lines": {PLANTED: 1},
    "the token of lines": [{"name": "ward", "token": PLANTED}],
    "a mistyped token": [{"name": "ward", "tokn": PLANTED}],
}


def what_check_says(stage: str, settings: dict[str, Any], *, flow: bool) -> str:
    graph = {
        "version": 1,
        "cameras": {"lobby": {"url": "rtsp://127.0.0.1/main"}},
        "stages": {"capture": {"use": "capture"}, "other": {"use": stage, "from": "capture", "with": settings}},
    }
    with pytest.raises(GraphError) as caught:
        parse_graph(yaml.safe_dump(graph, default_flow_style=flow, width=4096), "graph.yaml", base_folder=Path.cwd())
    return f"{caught.value}\n{caught.value.with_excerpts}"


def test_settings_with_secrets_are_known_by_their_names() -> None:
    assert {"password", "bearer_token", "signing_secrets", "curve_secret_key", "tokens"} <= {one for _, one in SECRETS}


@pytest.mark.parametrize("flow", [False, True], ids=["in lines", "in braces"])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_secret_is_not_shown(wrong: object, *, flow: bool) -> None:
    for stage, setting in SECRETS:
        said = what_check_says(stage, {setting: wrong}, flow=flow)
        assert PLANTED not in said, (stage, setting)


@pytest.mark.parametrize("flow", [False, True], ids=["in lines", "in braces"])
def test_the_value_of_a_mistyped_key_is_not_shown(*, flow: bool) -> None:
    for stage, setting in SECRETS:
        for mistyped in (setting[:-1] + "x", setting[1:], setting.replace("ss", "s")):
            said = what_check_says(stage, {mistyped: PLANTED}, flow=flow)
            assert PLANTED not in said, (stage, mistyped)


def test_what_was_wrong_is_still_told() -> None:
    said = what_check_says("serve", {"tokens": [{"name": "ward", "token": "too short"}]}, flow=False)
    assert "tokens[0].token: expected 16 or more characters, got 9 characters (it is not shown)" in said
    assert "bearer_token: expected text, got a number (it is not shown); write it in quotes" in what_check_says(
        "sink_webhook", {"bearer_token": 12345}, flow=False
    )
