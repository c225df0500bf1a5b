"""The OpenAPI document says of parameters, bodies and answers what the calls take and give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from camgraph_test_stages.described import every_call

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.monitoring.run_status import CameraStatus, RunStatus, as_json
from camgraph.tools.service.web.calls import MOST_BODY, ROLES
from camgraph.tools.service.web.openapi import openapi_of
from camgraph.tools.service.web.queries import Number, OneOf


def document() -> dict[str, Any]:
    return openapi_of(every_call())


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def references(value: Any) -> Iterator[str]:
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from references(one)
    if isinstance(value, dict) and "$ref" in value:
        yield value["$ref"]


def test_each_reference_leads_to_a_schema_that_somebody_needs() -> None:
    named = {f"#/components/schemas/{name}" for name in document()["components"]["schemas"]}
    assert set(references(document())) == named
    assert len(named) > 15


def test_operations_have_unique_names_and_their_paths_parameters() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names)
    for path, _, operation in operations():
        in_path = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
        assert in_path == {part.strip("{}") for part in path.split("/") if part.startswith("{")}


def test_parameters_are_described_as_they_are_read() -> None:
    found = {one["name"]: one["schema"] for one in document()["paths"]["/api/incidents"]["get"]["parameters"]}
    assert found["limit"] == {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}
    assert found["phase"]["enum"] == ["running"]
    for call in every_call():
        for name, parameter in call.query.items():
            schema = parameter.schema()
            if isinstance(parameter, Number):
                for right in (schema["minimum"], schema["maximum"]):
                    assert parameter.read(name, str(right)) == right
                for wrong in (schema["minimum"] - 1, schema["maximum"] + 1):
                    with pytest.raises(UserError, match="expected a number"):
                        parameter.read(name, str(wrong))
            if isinstance(parameter, OneOf):
                assert [parameter.read(name, word) for word in schema["enum"]] == schema["enum"]


def test_whole_status_is_described_key_by_key() -> None:
    schemas = document()["components"]["schemas"]
    assert list(schemas["RunStatus"]["properties"]) == list(as_json(RunStatus()))
    assert list(schemas["CameraStatus"]["properties"]) == list(as_json(CameraStatus()))


def test_a_body_is_described_by_what_it_is_read_with() -> None:
    schemas = document()["components"]["schemas"]
    assert schemas["NewLabel"] == {
        "type": "object",
        "title": "NewLabel",
        "description": "What somebody says of an incident.",
        "properties": {
            "label": {"type": "string", "enum": ["acknowledged", "true_alarm", "false_alarm"]},
            "note": {"type": "string", "default": "", "maxLength": 1000},
        },
        "required": ["label"],
        "additionalProperties": False,
    }
    assert {"stage", "kind", "name", "version", "points", "for", "save"} == schemas["ShapeChange"]["properties"].keys()
    assert len(json.dumps(document())) < 2 * MOST_BODY, "it is asked for by programs that read it whole"


def test_each_call_says_whom_it_refuses() -> None:
    for _, method, operation in operations():
        role = ROLES.index(operation["x-role"])
        assert bool(operation["security"]) == (role > 0)
        assert ("403" in operation["responses"]) == (role > 1 or method != "get")
        assert {"401", "413", "421", "429"} <= operation["responses"].keys()
