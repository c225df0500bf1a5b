"""The OpenAPI document. Everything in the document comes from the table of calls, so no call can contradict it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from camgraph.tools.service.web.calls import Call, Failure

_PLACES = {
    "name": "The name of a camera.",
    "incident": "The name of an incident, as lists of incidents tell it.",
    "file": "The name of a file, without a folder.",
}
_OF_FILE: dict[str, Any] = {"type": "string", "format": "binary"}
_OF_FILES = {"type": "object", "additionalProperties": {"type": "array", "items": _OF_FILE}}
_REF = "#/components/schemas/{model}"
_ALWAYS = {
    401: "a token is needed, or the one that was sent is not known",
    413: "more was sent than anybody needs",
    421: "the service is not known under this name",
    429: "too many requests, or too many wrong tokens",
}


def openapi_of(calls: Sequence[Call]) -> dict[str, Any]:
    """An OpenAPI 3.1 document of these calls."""
    schemas = _Schemas(calls)
    paths: dict[str, dict[str, Any]] = {}
    for call in calls:
        path, names = _plain(call.path)
        paths.setdefault(path, {})[call.method.lower()] = _operation(call, names, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "camgraph", "version": "1", "description": "The service of a camgraph run."},
        "paths": paths,
        "components": {
            "schemas": schemas.named,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Untitled(GenerateJsonSchema):
    """Schemas without titles: the title of a value would repeat the name of the value."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Schemas:
    """The schemas of all answers and bodies. Each schema is written once, under the name of its type."""

    def __init__(self, calls: Sequence[Call]) -> None:
        answers = {_name(call.gives.type): call.gives.type for call in calls if call.gives.type is not None}
        answers[_name(Failure)] = Failure
        wanted: list[tuple[str, Any, TypeAdapter[Any]]] = [
            (name, "serialization", TypeAdapter(one)) for name, one in answers.items()
        ]
        wanted += [(one.__name__, "validation", TypeAdapter(one)) for one in {call.body for call in calls if call.body}]
        found, together = TypeAdapter.json_schemas(wanted, ref_template=_REF, schema_generator=_Untitled)
        self._of = {name: schema for (name, _), schema in found.items()}
        self.named = together.get("$defs", {})

    def of(self, kind: Any) -> Mapping[str, Any]:
        """The schema of a type, or a reference to the schema."""
        return self._of[_name(kind)]


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))


def _operation(call: Call, names: Sequence[str], schemas: _Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _identifier(call),
        "summary": call.about,
        "parameters": [*map(_in_path, names), *_in_query(call)],
        "responses": {**_answers(call, schemas), **_errors(call, names, schemas)},
        "security": [] if call.role == "anyone" else [{"token": []}],
        "x-role": call.role,
    }
    if call.body:
        content = {"application/json": {"schema": schemas.of(call.body)}}
        operation["requestBody"] = {"description": call.body.words, "required": True, "content": content}
    if call.files:
        content = {kind: {"schema": _OF_FILES if kind.startswith("multipart/") else _OF_FILE} for kind in call.files}
        about = f"A file, or several in a form; {call.most_body} bytes in all."
        operation["requestBody"] = {"description": about, "required": True, "content": content}
    return operation


def _identifier(call: Call) -> str:
    parts = call.path.replace("{", "").replace("}", "").replace(".", "/").replace("_", "/").split("/")
    return "_".join([call.method.lower(), *filter(None, parts)])


def _in_path(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "description": _PLACES[name], "schema": schema}


def _in_query(call: Call) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "description": one.about, "schema": one.schema()}
        for name, one in call.query.items()
    ]


def _answers(call: Call, schemas: _Schemas) -> dict[str, Any]:
    gives = call.gives
    schema = {"type": "string"} if gives.type is None else schemas.of(gives.type)
    content = {"content": {gives.media: {"schema": schema}}}
    also = {str(code): {"description": about, **({} if code == 304 else content)} for code, about in gives.also.items()}
    return {str(gives.status): {"description": gives.about, **content}, **also}


def _errors(call: Call, names: Sequence[str], schemas: _Schemas) -> dict[str, Any]:
    """The errors that follow from a call, and the errors that the call names; a call's own words replace usual ones."""
    follow = dict(_ALWAYS)
    if call.role in ("operator", "admin"):
        follow[403] = f"the role {call.role} is needed"
    if call.method != "GET":
        follow[403] = "the role is too low, or the change comes from a page of somebody else"
    if call.query or call.body or call.files:
        follow[400] = "what was sent cannot be meant"
    if names:
        follow[404] = "there is no such thing"
    content = {"application/json": {"schema": schemas.of(Failure)}}
    every = {**follow, **call.errors}
    return {str(code): {"description": every[code], "content": content} for code in sorted(every)}


def _plain(path: str) -> tuple[str, list[str]]:
    """`/a/{b:path}` -> `/a/{b}` and the names."""
    names, plain = [], []
    for part in path.split("/"):
        if part.startswith("{"):
            names.append(part.strip("{}").partition(":")[0])
            plain.append("{" + names[-1] + "}")
        else:
            plain.append(part)
    return "/".join(plain), names
