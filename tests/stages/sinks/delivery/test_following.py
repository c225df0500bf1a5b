"""Filters of sinks follow the rules of the graph: their time zone, and the names of the rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.sink_graphs import RULES, planned_settings

from camgraph.pipeline.errors import GraphError

Settings = Callable[..., Any]


@pytest.fixture
def settings_of(tmp_path: Path) -> Settings:
    """The settings that the sink `out` of a graph has when it is planned."""

    return partial(planned_settings, tmp_path)


@pytest.mark.parametrize("source", ["actions", "events"])
@pytest.mark.parametrize("use", ["sink_csv", "sink_jsonl", "sink_footage"])
def test_times_of_day_are_those_of_the_rules(settings_of: Settings, use: str, source: str) -> None:
    assert settings_of(use, "path: a.csv", source=source)["time_zone"] == "Europe/Berlin"
    assert settings_of(use, "path: a.csv, time_zone: Asia/Tokyo", source=source)["time_zone"] == "Asia/Tokyo"
    assert settings_of(use, "path: a.csv, time_zone: UTC", source=source)["time_zone"] == "UTC"
    without = RULES.replace("time_zone: Europe/Berlin", "")
    assert settings_of(use, "path: a.csv", source=source, rules=without).get("time_zone") is None


@pytest.mark.parametrize(("look", "is_told"), [("blurred_faces", True), ("annotated", False)])
def test_rules_tell_where_heads_are_if_faces_are_blurred(settings_of: Settings, look: str, is_told: bool) -> None:
    assert settings_of("sink_footage", f"look: {look}", of="actions").get("heads", False) is is_told


def test_faces_are_not_blurred_unless_rules_tell_where(settings_of: Settings) -> None:
    with pytest.raises(GraphError) as found:
        settings_of("sink_footage", "look: blurred_faces", source="events")
    [one] = found.value.problems
    assert one.line == 11
    assert "`actions` does not tell where heads are" in one.text
    read = "log: {use: sink_jsonl, from: actions, with: {path: log.jsonl}}"
    assert settings_of("sink_footage", "look: blurred_faces", source="others", beside=read), "they may tell it"


def test_two_stages_write_no_pictures_of_the_same_names(settings_of: Settings) -> None:
    """That of the other look would take the place of the one with hidden faces."""
    beside = "clean: {use: sink_footage, from: actions, with: {look: clean, path: ./footage/}}"
    with pytest.raises(GraphError) as found:
        settings_of("sink_footage", "look: blurred_faces, path: footage", beside=beside)
    assert "`clean` writes the same files" in str(found.value)


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ("only: {rule: fal}", "rule: 'fal' fits none of fall, low; did you mean `fall`?"),
        ("never: [{rule: fall}, {rule: [low, 'wal*']}]", "rule: 'wal*' fits none of fall, low"),
        ("only: {action: low}", "action: 'low' fits none of fall, lying_down, in_hall"),
    ],
)
def test_a_filter_for_a_rule_that_nobody_has_is_a_mistake(settings_of: Settings, filters: str, problem: str) -> None:
    with pytest.raises(GraphError) as found:
        settings_of("sink_socket", f"address: 'tcp://127.0.0.1:7000', {filters}")
    [one] = found.value.problems
    assert one.line == 11
    assert problem in one.text


@pytest.mark.parametrize("filters", ["rule: [fall, 'lo*']", "action: [lying_down, in_hall]", "kind: camera"])
def test_names_of_rules_actions_and_counters_are_known(settings_of: Settings, filters: str) -> None:
    assert settings_of("sink_csv", f"path: a.csv, only: {{{filters}}}")


def test_events_of_others_may_have_any_names(settings_of: Settings) -> None:
    assert settings_of("sink_csv", "path: a.csv, only: {rule: theirs}", source="events")


def test_mistakes_in_the_rules_are_reported_alone(settings_of: Settings) -> None:
    with pytest.raises(GraphError) as found:
        settings_of("sink_csv", "path: a.csv, only: {rule: fal}", rules=RULES.replace("lean > 60deg", "leen > 60deg"))
    [one] = found.value.problems
    assert "leen" in one.text
