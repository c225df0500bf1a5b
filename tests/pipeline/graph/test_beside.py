"""Sinks learn the facts of the stages that read from the same senders: what another sink keeps, and where."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.events import Emit, EmitSettings

from camgraph.pipeline.graph.arrows import Arrow
from camgraph.pipeline.graph.definition import StageEntry
from camgraph.pipeline.graph.informing import informed
from camgraph.pipeline.graph.nodes import Node
from camgraph.pipeline.graph.report import Report
from camgraph.pipeline.graph.yaml_source import load
from camgraph.pipeline.messages import Event
from camgraph.pipeline.stage import Settings, Stage, Upstream
from camgraph.stages.sinks.sink_footage import SinkFootage, SinkFootageSettings


class MailSettings(Settings):
    found: dict[str, Any] | None = None


class Mail(Stage[MailSettings]):
    """Sends the pictures that a stage beside it keeps."""

    settings_type = MailSettings
    inputs = Event
    outputs = ()

    @classmethod
    def follow(cls, settings: MailSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        kept = [facts["footage"] for facts in upstream.beside.values() if "footage" in facts]
        return {"found": dict(kept[0])} if kept else {}


def _no_report() -> Report:
    return Report(load("version: 1", "graph.yaml"))


def node(name: str, kind: type[Stage[Any]], settings: Settings) -> Node:
    return Node(
        name, StageEntry.model_validate({"use": "x", "with": settings.model_dump(exclude_unset=True)}), kind, settings
    )


@pytest.mark.parametrize("footage_first", [True, False])
@pytest.mark.parametrize("sender", ["actions", "events"])
def test_a_sink_finds_the_footage_beside_it(tmp_path: Path, footage_first: bool, sender: str) -> None:
    sinks = [
        node("footage", SinkFootage, SinkFootageSettings(path="kept", clips=False)),
        node("mail", Mail, MailSettings()),
    ]
    nodes = {one.name: one for one in [node("actions", Emit, EmitSettings()), *sinks[:: 1 if footage_first else -1]]}
    arrows = [Arrow("actions", "footage", "", (), type=Event.TYPE), Arrow(sender, "mail", "", (), type=Event.TYPE)]
    found = informed(nodes, arrows, tmp_path, _no_report())
    assert found["mail"].settings.found == {"folder": "kept", "clips": False, "look": "annotated"}


def test_a_sink_of_other_events_finds_nothing(tmp_path: Path) -> None:
    nodes = {
        one.name: one
        for one in [
            node("actions", Emit, EmitSettings()),
            node("others", Emit, EmitSettings()),
            node("footage", SinkFootage, SinkFootageSettings()),
            node("mail", Mail, MailSettings()),
        ]
    }
    arrows = [Arrow("actions", "footage", "", (), type=Event.TYPE), Arrow("others", "mail", "", (), type=Event.TYPE)]
    assert informed(nodes, arrows, tmp_path, _no_report())["mail"].settings.found is None
