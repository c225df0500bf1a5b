"""Events as the CloudEvents binding for HTTP writes them: https://github.com/cloudevents/spec

structured   the whole event is the body                             application/cloudevents+json
binary       `data` is the body, everything else stands in headers   ce-id, ce-source, ce-type, ...
batched      a list of whole events is the body                      application/cloudevents-batch+json

An event of a stage of yours that is no CloudEvent is sent as it is, as application/json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

Mode = Literal["structured", "binary", "batched"]
Headers = dict[str, str]
_REQUIRED = ("specversion", "id", "source", "type")
_PLAIN = "!#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""What stands as it is in a header, beside letters and digits."""


def is_cloudevent(body: Mapping[str, Any]) -> bool:
    """Whether it has the attributes that each CloudEvent has."""
    return all(isinstance(body.get(name), str) and body[name] for name in _REQUIRED)


def structured(body: Mapping[str, Any], line: bytes) -> tuple[Headers, bytes]:
    """`line`: the body as JSON, which is sent as it is."""
    return {"Content-Type": "application/cloudevents+json" if is_cloudevent(body) else "application/json"}, line


def binary(body: Mapping[str, Any], line: bytes) -> tuple[Headers, bytes]:
    """Attributes become headers; an attribute that is no text, number or truth value cannot be one, and is left out."""
    if not is_cloudevent(body):
        return structured(body, line)
    headers = {
        f"ce-{name.lower()}": header_value(value)
        for name, value in body.items()
        if name not in ("data", "datacontenttype") and isinstance(value, str | int | float)
    }
    content_type = str(body.get("datacontenttype") or "application/json")
    return headers | {"Content-Type": content_type}, as_json(body.get("data"))


def batched(lines: Sequence[bytes]) -> tuple[Headers, bytes]:
    return {"Content-Type": "application/cloudevents-batch+json"}, b"[" + b",".join(lines) + b"]"


def as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def header_value(value: str | float) -> str:
    """Text for a header: whatever is not printable ASCII, and also space, `"` and `%`, percent-encoded."""
    text = json.dumps(value) if isinstance(value, bool | int | float) else value
    return quote(text, safe=_PLAIN)
