"""Wrong messages: each is counted, and a log of a wrong sender stays short."""

from __future__ import annotations

import structlog
from structlog.testing import capture_logs

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.transport.refusals import Refusals


def test_every_message_is_counted_and_each_kind_logged_once() -> None:
    counters = Counters()
    with capture_logs() as logs:
        refusals = Refusals(counters, structlog.get_logger())
        for camera in ("front", "yard", "front"):
            refusals.add(WireError("a broken header"), sender="src", counted="dropped.wire", camera=camera)
    assert sorted(counters.snapshot()) == [("dropped.wire", "front", 2), ("dropped.wire", "yard", 1)]
    assert [(line["event"], line["sender"], line["error"]) for line in logs] == [
        ("message_refused", "src", "a broken header")
    ]


def test_another_sender_or_another_error_is_another_kind() -> None:
    with capture_logs() as logs:
        refusals = Refusals(Counters(), structlog.get_logger())
        for sender, text in [("src", "a"), ("src", "b"), ("infer", "a"), ("src", "a")]:
            refusals.add(WireError(text), sender=sender, counted="dropped.wire")
    assert [(line["sender"], line["error"]) for line in logs] == [("src", "a"), ("src", "b"), ("infer", "a")]


def test_a_sender_whose_errors_all_differ_does_not_fill_the_log() -> None:
    counters = Counters()
    with capture_logs() as logs:
        refusals = Refusals(counters, structlog.get_logger())
        for n in range(1000):
            refusals.add(WireError(f"byte {n}"), sender="src", counted="dropped.wire")
    assert len(logs) == 20
    assert counters.get("dropped.wire", "") == 1000
