"""The JSON Schema says what the check says, and the one in `configs/` is up to date."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.graph.definition import GraphFile, StageEntry
from camgraph.pipeline.graph.schema import graph_schema
from camgraph.pipeline.registry import stage_names

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return graph_schema(["count_source", "double", "collect_events"])


def test_the_schema_in_configs_is_that_of_the_stages() -> None:
    """After a change of a stage's settings: `camgraph schema --builtin > configs/graph.schema.json`."""
    kept = json.loads((ROOT / "configs" / "graph.schema.json").read_text())
    assert kept == json.loads(json.dumps(graph_schema(stage_names("camgraph"))))


def test_every_key_is_described() -> None:
    for model in (GraphFile, StageEntry):
        assert all(field.title and field.description for field in model.model_fields.values())


def test_the_reference_names_every_key() -> None:
    text = (ROOT / "docs" / "reference" / "graph_keys.md").read_text()
    for key in keys_of(GraphFile.model_json_schema(by_alias=True)):
        assert f"`{key}`" in text, f"docs/reference/graph_keys.md says nothing of `{key}`"


def keys_of(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from part.get("properties", {})
        for value in part.values():
            yield from keys_of(value)
    elif isinstance(part, list):
        for value in part:
            yield from keys_of(value)


def test_every_reference_leads_somewhere(schema: dict[str, Any]) -> None:
    def references(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            yield from [part["$ref"]] if "$ref" in part else []
            for value in part.values():
                yield from references(value)
        elif isinstance(part, list):
            for value in part:
                yield from references(value)

    found = {reference.removeprefix("#/$defs/") for reference in references(schema)}
    assert found
    assert found <= schema["$defs"].keys()


def test_the_settings_follow_the_use(schema: dict[str, Any]) -> None:
    rules = {rule["if"]["properties"]["use"]["const"]: rule["then"] for rule in schema["$defs"]["StageEntry"]["allOf"]}
    assert set(rules) == {"count_source", "double", "collect_events"}
    name = rules["collect_events"]["properties"]["with"]["$ref"].removeprefix("#/$defs/")
    settings = schema["$defs"][name]
    assert settings["required"] == ["path"]
    assert settings["properties"]["order"]["enum"] == ["arrival", "time"]
    assert settings["additionalProperties"] is False


def test_the_cameras_follow_the_source(schema: dict[str, Any]) -> None:
    (rule,) = schema["allOf"]
    name = rule["then"]["properties"]["cameras"]["additionalProperties"]["$ref"].removeprefix("#/$defs/")
    frames = schema["$defs"][name]["properties"]["frames"]
    assert (frames["type"], frames["minimum"], frames["pattern"]) == (["integer", "string"], 0, r"\$\{")


def test_a_stage_that_is_not_known_here_may_still_be_used(schema: dict[str, Any]) -> None:
    use = schema["$defs"]["StageEntry"]["properties"]["use"]
    assert use["anyOf"] == [{"enum": ["collect_events", "count_source", "double"]}, {"type": "string"}]
