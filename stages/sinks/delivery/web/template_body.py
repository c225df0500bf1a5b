"""Bodies of requests made from an event, for services that want a form of their own.

body: {text: "{action} on {camera}", channel: "#ward"}      JSON; values of the event are escaped by being values
body: "{action} on {camera}"                                text
form: {To: "+49...", Body: "{action} on {camera}"}          a form, as gateways for short messages want it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlencode

from pydantic import AfterValidator, Field, JsonValue, WithJsonSchema

from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.template import TemplateText, checked, filled
from camgraph.stages.sinks.delivery.web.cloudevents_http import as_json


def _checked_all(value: JsonValue) -> JsonValue:
    """Raises ValueError for a text in it that `filled` does not take."""
    if isinstance(value, str):
        checked(value)
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            _checked_all(one)
    return value


def _checked_body(value: JsonValue) -> JsonValue:
    if not isinstance(value, str | dict) or not value:
        raise ValueError("expected a text, or keys and values of a JSON object")
    return _checked_all(value)


TemplateBody = Annotated[
    JsonValue,
    AfterValidator(_checked_body),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
]
"""What `filled_body` takes. One type, so that a mistake in it is not reported as one of each type of a union."""
TemplateForm = Annotated[dict[str, TemplateText], Field(min_length=1)]


def _filled_all(value: JsonValue, view: EventView, time_zone: str) -> JsonValue:
    if isinstance(value, str):
        return filled(value, view, time_zone)
    if isinstance(value, list):
        return [_filled_all(one, view, time_zone) for one in value]
    if isinstance(value, dict):
        return {key: _filled_all(one, view, time_zone) for key, one in value.items()}
    return value


def filled_body(template: JsonValue, view: EventView, time_zone: str) -> tuple[str, bytes]:
    """Content type and body."""
    if isinstance(template, str):
        return "text/plain; charset=utf-8", filled(template, view, time_zone).encode()
    return "application/json", as_json(_filled_all(template, view, time_zone))


def filled_form(template: Mapping[str, str], view: EventView, time_zone: str) -> tuple[str, bytes]:
    """Content type and body."""
    fields = {name: filled(text, view, time_zone) for name, text in template.items()}
    return "application/x-www-form-urlencoded", urlencode(fields).encode()
