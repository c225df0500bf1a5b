"""An event as a message of syslog.

RFC 5424, over a network:
    <129>1 2026-11-23T21:03:11.250Z ward-pc camgraph ward incident.start [camgraph@32473 id="8c1f" ...] Fall on room-3
    |      time of the event        host    program  graph type           facts                         text
    facility x 8 + severity

To /dev/log, whose readers (journald above all) know only the older form:
    <129>Nov 23 21:03:11 camgraph: Fall on room-3 [camgraph@32473 id="8c1f" ...]
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from camgraph.pipeline.foreign_text import printable
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.template import one_line

Facility = Literal[
    "user", "daemon", "auth", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"
]
_FACILITIES: Mapping[str, int] = {"user": 1, "daemon": 3, "auth": 4, **{f"local{n}": 16 + n for n in range(8)}}
_SEVERITIES = {"alarm": 1, "warning": 4, "info": 6}
"""alarm: alert, "action must be taken immediately"."""
_NOTICE = 5
"""Of events that have no severity, such as a lost camera."""
_SD_ID = "camgraph@32473"
"""The number that stands in examples (RFC 5612): camgraph has none of its own."""
_NOT_PRINTABLE_ASCII = re.compile(r"[^\x21-\x7e]")
_SPECIAL = re.compile(r'(["\\\]])')
_MOST_VALUE = 300
_BOM = b"\xef\xbb\xbf"


def rfc5424(view: EventView, text: str, *, facility: Facility, host: str, graph: str) -> bytes:
    """For the network. `text`: whatever is to be read, on one line."""
    kind = str(view.body.get("type", "")).removeprefix("camgraph.")
    head = (
        f"<{_priority(view, facility)}>1 {_timestamp(view)} {_header(host, 255)} camgraph {_header(graph, 128)} "
        f"{_header(kind, 32)} {_facts(view)} "
    )
    return _encoded(head) + (b"" if text.isascii() else _BOM) + _encoded(text)


def local(view: EventView, text: str, *, facility: Facility) -> bytes:
    """For /dev/log. `text`: as above."""
    at = time.strftime("%b %e %H:%M:%S", time.localtime(view.wall_ns / 1e9 or None))
    return _encoded(f"<{_priority(view, facility)}>{at} camgraph: {text} {_facts(view)}")


def with_length(message: bytes) -> bytes:
    """For streams: octet counting of RFC 6587 and RFC 5425."""
    return b"%d %s" % (len(message), message)


def _priority(view: EventView, facility: Facility) -> int:
    return _FACILITIES[facility] * 8 + _SEVERITIES.get(view.severity, _NOTICE)


def _timestamp(view: EventView) -> str:
    if not view.wall_ns:
        return "-"
    at = datetime.fromtimestamp(view.wall_ns / 1e9, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _header(text: str, most: int) -> str:
    return _NOT_PRINTABLE_ASCII.sub("_", text)[:most] or "-"


def _facts(view: EventView) -> str:
    """The structured data. Facts that an event does not have are left out."""
    facts = {
        "id": view.event.own_id,
        "camera": view.camera,
        "rule": view.rule,
        "action": view.action,
        "severity": view.severity,
        "phase": view.phase,
        "incident": view.incident,
        "snapshot": str(view.data.get("snapshot") or ""),
        "clip": str(view.data.get("clip") or ""),
    }
    pairs = "".join(f' {name}="{_value(value)}"' for name, value in facts.items() if value)
    return f"[{_SD_ID}{pairs}]"


def _value(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(printable(text))[:_MOST_VALUE])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")
