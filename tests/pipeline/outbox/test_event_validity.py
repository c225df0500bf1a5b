"""An event is committed only as something that every sink can take; any other is refused, and the rest goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import LONGEST_BODY, Event
from camgraph.pipeline.outbox.event_validity import why_invalid
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.testing import HandContext, stamp

GOOD = Event(stamp(1), "e1", "i1", "start", b'{"a": 1}')


def item(**changed: Any) -> Item:
    return Item("cam", Key(0, 1, 0), replace(GOOD, **changed), "actions")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"id": None}, "id"),
    ({"id": ""}, "id"),
    ({"id": "a" * 129}, "id"),
    ({"id": "two words"}, "id"),
    ({"id": "line\nbreak"}, "id"),
    ({"incident": None}, "incident"),
    ({"incident": ""}, "incident"),
    ({"phase": "begin"}, "phase"),
    ({"phase": None}, "phase"),
    ({"stamp": stamp(1, "another")}, "camera"),
    ({"stamp": stamp(1)._replace(time_ns=1 << 63)}, "time"),
    ({"stamp": stamp(1)._replace(time_ns=np.int64(1))}, "time"),  # type: ignore[arg-type]
    ({"body": "{}"}, "bytes"),
    ({"body": None}, "bytes"),
    ({"body": b'{"a":\n1}'}, "one line"),
    ({"body": b'{"a": 1}{"b": 2}'}, "JSON in UTF-8"),
    ({"body": b""}, "JSON in UTF-8"),
    ({"body": b'{"a": "\xff"}'}, "JSON in UTF-8"),
    ({"body": b'{"a": NaN}'}, "JSON in UTF-8"),
    ({"body": b"[" * 100_000}, "JSON in UTF-8"),
    ({"body": b"[1]"}, "JSON object"),
    ({"body": b'{"a": "%s"}' % (b"x" * LONGEST_BODY)}, "at most 4,000,000 bytes"),
    ({"body": b"null"}, "JSON object"),
]


def test_a_sound_event_has_nothing_wrong_with_it() -> None:
    assert why_invalid(item()) == ""
    assert why_invalid(item(id="Größe-1", body='{"name": "Größe"}'.encode())) == ""


@pytest.mark.parametrize(("changed", "expected"), WRONG)
def test_what_no_sink_could_take_is_told(changed: dict[str, Any], expected: str) -> None:
    assert expected in why_invalid(item(**changed))


@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_whatever_passes_is_one_line_and_one_object(body: bytes) -> None:
    if not why_invalid(item(body=body)):
        assert body.splitlines() == [body]
        assert body.strip().startswith(b"{")


class Log:
    """Keeps what is told."""

    def __init__(self) -> None:
        self.reported: list[dict[str, Any]] = []

    def error(self, event: str, **keys: Any) -> None:
        self.reported.append({"event": event, **keys})

    info = warning = exception = error


def test_outbox_counts_invalid_events_and_logs_once(tmp_path: Path) -> None:
    log = Log()
    context = HandContext(tmp_path, tmp_path, log=log)
    values = {"path": str(tmp_path / "outbox.sqlite"), "sinks": {"log": []}}
    outbox = Outbox(Outbox.settings_type.model_validate(values), context)
    outbox.open()
    try:
        outbox.accept([item(**changed) for changed, _ in WRONG] + [item()])
        outbox.accept([item(id=""), item(id="e2")])
        assert [event.id for _, event in outbox.pull("log", 99)] == ["e1", "e2"]
        assert context.counts["dropped.invalid_event", "cam"] == len(WRONG) + 1
        refused = [line for line in log.reported if line["event"] == "event_refused"]
        assert all(line["error_id"] == "events-dropped" and {"id", "incident"} <= line.keys() for line in refused)
        whys = [line["why"] for line in refused]
        assert len(whys) == len(set(whys)) < len(WRONG)
        outbox.acknowledge("log", [1, 2])
    finally:
        outbox.db.close()
