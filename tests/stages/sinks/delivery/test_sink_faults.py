"""`SinkContract` finds what a sink has forgotten: each of these sinks has one fault, and one promise fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest

from camgraph.pipeline import testing
from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.testing import Receiver, SinkCase, SinkContract, event, until
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink, Refused
from camgraph.stages.sinks.delivery.event_view import EventView, view_of

BAD = event(9999, "a")


@dataclass
class Board:
    """A receiver in memory."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    is_there: bool = True

    def arrived(self) -> Sequence[str]:
        return list(self.ids)

    def stop(self) -> None:
        self.is_there = False

    def start(self) -> None:
        self.is_there = True


BOARD = Board()
"""Of the present test."""


class Good(EventSink[DeliverySettings]):
    """Event -> its id on the board."""

    settings_type = DeliverySettings

    def send(self, events: Sequence[EventView]) -> None:
        for view in events:
            self.put(view)
            self.sent_already(view)

    def put(self, view: EventView) -> None:
        if not BOARD.is_there:
            raise Unavailable("nobody is there")
        if view.event.id == BAD.id:
            raise Refused({view.event.id: "no"})
        BOARD.ids.append(view.event.own_id)


class Forgets(Good):
    def put(self, view: EventView) -> None:
        if BOARD.is_there:
            super().put(view)


class Buries(Good):
    def put(self, view: EventView) -> None:
        if not BOARD.is_there:
            raise Refused({view.event.id: "away"})
        super().put(view)


class SendsTwice(Good):
    def put(self, view: EventView) -> None:
        super().put(view)
        super().put(view)


class Turns(Good):
    def send(self, events: Sequence[EventView]) -> None:
        super().send(events[::-1])


class WaitsForEver(Good):
    def put(self, view: EventView) -> None:
        if view.event.id != BAD.id:
            super().put(view)


class LosesOne(Good):
    def put(self, view: EventView) -> None:
        if view.event.own_id != "e3":
            super().put(view)


class AsksNoFilter(Good):
    def _leaves_out(self, view: EventView) -> bool:
        return False


class DiesOfItsState(Good):
    def open(self) -> None:
        file = self.context.state_folder / "n"
        file.write_text(str(int(file.read_text()) + 1 if file.exists() else 0))


@contextmanager
def board(_: Path) -> Iterator[Receiver]:
    BOARD.ids.clear()
    BOARD.start()
    yield BOARD


def case(sink: type[EventSink[DeliverySettings]]) -> SinkCase:
    return SinkCase(sink, board, refused=BAD)


PROMISES = [name for name in vars(SinkContract) if name.startswith("test_")]


def test_a_sink_without_a_fault_keeps_every_promise(tmp_path: Path) -> None:
    skipped = []
    for name in PROMISES:
        (tmp_path / name).mkdir()
        try:
            getattr(SinkContract(), name)(case=case(Good), tmp_path=tmp_path / name)
        except SkipTest as skip:
            skipped.append(str(skip))
    assert skipped == ["the case has no `at`"] * 4


@pytest.mark.parametrize(
    ("sink", "promise", "told"),
    [
        (Forgets, "test_events_wait_for_a_receiver_that_comes_later", "the sink takes the events"),
        (Forgets, "test_events_wait_for_a_receiver_that_goes_and_comes_back", "the sink takes the events"),
        (Buries, "test_events_wait_for_a_receiver_that_comes_later", "the sink takes the events"),
        (SendsTwice, "test_events_arrive_once_and_in_order", "has arrived twice"),
        (Turns, "test_events_arrive_once_and_in_order", "out of order"),
        (WaitsForEver, "test_an_event_that_cannot_be_delivered_is_a_dead_letter", "raise `Refused`"),
        (AsksNoFilter, "test_filters_leave_out_events", "that nobody has sent"),
    ],
)
def test_a_fault_breaks_its_promise(
    tmp_path: Path, sink: type[EventSink[DeliverySettings]], promise: str, told: str
) -> None:
    with pytest.raises(AssertionError, match=told):
        getattr(SinkContract(), promise)(case=case(sink), tmp_path=tmp_path)


def test_a_sink_that_dies_of_its_state_is_found(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        SinkContract().test_a_damaged_file_of_state_costs_no_event(case=case(DiesOfItsState), tmp_path=tmp_path)


def test_a_refused_event_of_a_used_id_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="sends an event of the id of `refused`"):
        SinkContract().test_an_event_that_cannot_be_delivered_is_a_dead_letter(
            case=SinkCase(Good, board, refused=event(7, "a")), tmp_path=tmp_path
        )


def test_events_that_do_not_arrive_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "until", partial(until, within_s=0))
    with pytest.raises(AssertionError, match=r"\['e3'\] did not arrive, although the sink took them"):
        SinkContract().test_events_arrive_once_and_in_order(case=case(LosesOne), tmp_path=tmp_path)


def test_an_event_of_tests_is_read_as_one_of_rules() -> None:
    view = view_of(event(61, "hall", phase="start", incident="f1", severity="info"))
    assert (view.camera, view.rule, view.action, view.severity) == ("hall", "fall", "fall", "info")
    assert (view.kind, view.phase, view.incident) == ("incident", "start", "f1")
    assert (view.event.own_id, view.body["time"]) == ("e61", "2026-01-01T12:01:01.000Z")
