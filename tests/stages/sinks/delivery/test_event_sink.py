"""The base of sinks, by a small one that sends lines over a real socket."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.delivering import delivering
from camgraph_test_stages.incident_views import incident
from pydantic import Field

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import feed, opened, reports_of
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink, Later, Refused
from camgraph.stages.sinks.delivery.event_view import EventView


class LineSettings(DeliverySettings):
    port: int = Field(description="On this machine.")


class SinkLines(EventSink[LineSettings]):
    """A line an event; the other side answers `ok`, `no` (never), or `later`."""

    settings_type = LineSettings
    pauses_s = (0.01, 0.02)

    def connect(self) -> None:
        self._stream = socket.create_connection(("127.0.0.1", self.settings.port), timeout=60)
        self._answers = self._stream.makefile("r")

    def send(self, events: Sequence[EventView]) -> None:
        for view in events:
            self._stream.sendall(view.event.body + b"\n")
            answer = self._answers.readline().strip()
            if answer == "no":
                raise Refused({view.event.id: "it does not want this one"})
            if answer != "ok":
                raise Later("it has no time", 0.05) if answer == "later" else ConnectionError("it has gone")
            self.sent_already(view)

    def disconnect(self) -> None:
        with suppress(AttributeError):
            self._answers.close()
            self._stream.close()


class OtherSide:
    """Answers each line as `answers` says, by the event's id; "" closes the connection. `ok` for all others."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.answers: dict[str, list[str]] = {}
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def ids(self) -> list[str]:
        return [line["id"] for line in self.lines]

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                with connection, connection.makefile("rwb") as stream:
                    for line in stream:
                        event = json.loads(line)
                        waiting = self.answers.get(event["id"])
                        answer = waiting.pop(0) if waiting else "ok"
                        if not answer:
                            break
                        if answer == "ok":
                            self.lines.append(event)
                        stream.write(answer.encode() + b"\n")
                        stream.flush()


@pytest.fixture
def other() -> Iterator[OtherSide]:
    with closing(OtherSide()) as made:
        yield made


def push(stage: SinkLines, views: Sequence[EventView], *, within_s: float = 30.0) -> int:
    """Hand in the same events until they are taken, as the runtime does; how often that was refused."""
    until_s, events, times = time.monotonic() + within_s, [view.event for view in views], 0
    while True:
        try:
            feed(stage, events, batch=len(events))
        except Unavailable:
            times += 1
            if time.monotonic() > until_s:
                raise
            threading.Event().wait(0.005)
        else:
            return times


A, B, C = (incident(name, "start", at_s=at) for at, name in enumerate("abc"))


def test_each_event_arrives_once_whatever_the_other_side_does(other: OtherSide, tmp_path: Path) -> None:
    other.answers = {A.event.id: ["", "later"], B.event.id: ["later", "", ""]}
    with opened(SinkLines, {"port": other.port}, folder=tmp_path) as stage:
        assert push(stage, [A, B, C]) >= 5
        counts = reports_of(stage).counts
    assert other.ids == [A.event.id, B.event.id, C.event.id]
    assert counts == {("written", "cam"): 3}


def test_a_refused_event_is_a_dead_letter_and_the_others_arrive(other: OtherSide, tmp_path: Path) -> None:
    other.answers = {B.event.id: ["no"]}
    with opened(SinkLines, {"port": other.port}, folder=tmp_path) as stage:
        push(stage, [A, B, C])
        [letter] = stage.context.dead_letters
        assert reports_of(stage).counts == {("written", "cam"): 2, ("dropped.refused", "cam"): 1}
    assert other.ids == [A.event.id, C.event.id]
    assert (letter.id, letter.why, letter.attempts) == (B.event.own_id, "it does not want this one", 1)


def test_repeated_events_are_known(other: OtherSide, tmp_path: Path) -> None:
    with opened(SinkLines, {"port": other.port}, folder=tmp_path) as stage:
        push(stage, [A, B])
        push(stage, [B, C])
        assert reports_of(stage).counts == {("written", "cam"): 3, ("repeated", "cam"): 1}
    assert other.ids == [A.event.id, B.event.id, C.event.id]


def test_pauses_are_kept(other: OtherSide, tmp_path: Path) -> None:
    port = other.port
    other.close()
    with delivering(SinkLines, {"port": port}, tmp_path, pauses_s=(3000.0,)) as stage:
        with pytest.raises(Unavailable, match=r"refused"):
            feed(stage, [A.event])
        with pytest.raises(Unavailable, match=r"next try in (2\d{3}|3000) s, after 1 failures"):
            feed(stage, [A.event])


def test_pauses_begin_anew_after_a_success(other: OtherSide, tmp_path: Path) -> None:
    """A server that was away for long and is back is not waited for that long when it next fails."""
    other.answers = {A.event.id: ["", "", ""], B.event.id: [""]}
    with delivering(SinkLines, {"port": other.port}, tmp_path, pauses_s=(0.0, 0.0, 0.0, 3000.0)) as stage:
        push(stage, [A])
        with pytest.raises(Unavailable):
            feed(stage, [B.event])
        feed(stage, [B.event])
    assert other.ids == [A.event.id, B.event.id]


def old(view: EventView, age_s: float) -> EventView:
    return replace(view, event=replace(view.event, committed_ns=time.time_ns() - int(age_s * 1e9)))


def test_an_event_that_is_too_old_is_a_dead_letter(other: OtherSide, tmp_path: Path) -> None:
    with opened(SinkLines, {"port": other.port, "expires": "1min"}, folder=tmp_path) as stage:
        push(stage, [old(A, 90), old(B, 30), C])
        [letter] = stage.context.dead_letters
        assert reports_of(stage).counts == {("written", "cam"): 2, ("dropped.expired", "cam"): 1}
    assert other.ids == [B.event.id, C.event.id], "one whose age nobody knows is sent"
    assert letter.why == "not delivered within 1min"


def test_the_attempts_of_a_dead_letter_are_its_own(other: OtherSide, tmp_path: Path) -> None:
    other.answers = {A.event.id: [""] * 100, B.event.id: ["", "no"]}
    with delivering(SinkLines, {"port": other.port, "expires": "2h"}, tmp_path) as stage:
        for _ in range(3):
            with pytest.raises(Unavailable):
                feed(stage, [old(A, 4000).event])
        stage.settings = stage.settings.model_copy(update={"expires": "1h"})
        push(stage, [old(A, 4000)])
        push(stage, [B])
        push(stage, [old(C, 4000)])
        attempts = {letter.id: letter.attempts for letter in stage.context.dead_letters}
    assert [attempts[one.event.own_id] for one in (A, B, C)] == [3, 2, 0]


def test_a_clock_that_is_set_makes_no_event_too_old(
    other: OtherSide, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.answers = {A.event.id: [""]}
    with opened(SinkLines, {"port": other.port, "expires": "1min"}, folder=tmp_path) as stage:
        waiting = old(A, 5)
        with pytest.raises(Unavailable):
            feed(stage, [waiting.event])
        hours_later = time.time_ns() + 3600 * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: hours_later)
        push(stage, [waiting])
        assert len(list(stage.context.dead_letters)) == 0
    assert other.ids == [A.event.id]


def test_only_fitting_events_are_sent(other: OtherSide, tmp_path: Path) -> None:
    views = [incident("a", "start"), incident("b", "start", rule="lying"), incident("a", "end", at_s=1)]
    settings = {"port": other.port, "only": {"rule": "fall"}, "never": {"phase": "end"}}
    with opened(SinkLines, settings, folder=tmp_path) as stage:
        push(stage, views)
        assert reports_of(stage).counts == {("written", "cam"): 1, ("filtered", "cam"): 2}


def test_merging_asks_for_the_phase_last(other: OtherSide, tmp_path: Path) -> None:
    """One alert for two incidents that overlap; the second one's start is an update by then."""
    views = [
        incident("a", "start"),
        incident("b", "start", at_s=5, rule="lying"),
        incident("a", "end", at_s=6),
        incident("b", "end", at_s=7),
        incident("c", "start", at_s=200),
    ]
    with opened(SinkLines, {"port": other.port, "merge": "1min", "only": {"phase": "start"}}, folder=tmp_path) as stage:
        push(stage, views)
    assert [line["data"]["incident"] for line in other.lines] == ["a", "c"]


def test_an_alert_that_was_not_sent_starts_no_cooldown(other: OtherSide, tmp_path: Path) -> None:
    first, second, third = (incident(name, "start", at_s=at) for at, name in enumerate("abc"))
    other.answers = {first.event.id: ["", "", "no"]}
    with opened(SinkLines, {"port": other.port, "cooldown": "10min"}, folder=tmp_path) as stage:
        push(stage, [first, second, third])
        assert reports_of(stage).counts["cooldown", "cam"] == 1
    assert [line["data"]["incident"] for line in other.lines] == ["b"]


@pytest.mark.parametrize("answers", [[], ["no"]])
def test_an_end_that_is_given_up_ends_its_group(other: OtherSide, tmp_path: Path, answers: list[str]) -> None:
    """Otherwise all later incidents of the camera would belong to it, and none would be told as a new one."""
    end = incident("a", "end", at_s=1)
    other.answers = {end.event.id: answers}
    settings = {"port": other.port, "merge": "1min", "expires": "1min"}
    with opened(SinkLines, settings, folder=tmp_path) as stage:
        push(stage, [incident("a", "start")])
        push(stage, [end if answers else old(end, 90)])
        assert len(list(stage.context.dead_letters)) == 1
        push(stage, [incident("b", "start", at_s=600)])
    assert [f"{line['data']['incident']} {line['data']['phase']}" for line in other.lines] == ["a start", "b start"]


@pytest.mark.parametrize("merge", [{}, {"merge": "1min"}])
def test_an_incident_belongs_to_the_time_in_which_it_began(
    other: OtherSide, tmp_path: Path, merge: dict[str, str]
) -> None:
    """A fall just before the day begins: its end is told, and the fall of the next night is a new one."""
    day_s, start_time = 86_400, "2026-11-23T12:00:00.000Z"
    views = [
        incident("a", "start"),
        incident("a", "end", at_s=120, start_time=start_time),
        incident("b", "start", at_s=600),
        incident("b", "end", at_s=610, start_time="2026-11-23T12:10:00.000Z"),
        incident("c", "start", at_s=day_s - 30),
    ]
    settings = {"port": other.port, "only": {"rule": "fall", "during": {"from": "21:00", "to": "12:01"}}, **merge}
    with opened(SinkLines, settings, folder=tmp_path) as stage:
        push(stage, views)
    assert [f"{line['data']['incident']} {line['data']['phase']}" for line in other.lines] == [
        "a start",
        "a end",
        "c start",
    ]


def test_a_group_hears_of_ends_that_no_filter_wants(other: OtherSide, tmp_path: Path) -> None:
    """As one whose facts differ from those of its beginning."""
    views = [
        incident("a", "start"),
        incident("a", "end", at_s=1, severity="info"),
        incident("b", "start", at_s=600),
    ]
    settings = {"port": other.port, "only": {"severity": "warning"}, "merge": "1min"}
    with opened(SinkLines, settings, folder=tmp_path) as stage:
        push(stage, views)
    assert [f"{line['data']['incident']} {line['data']['phase']}" for line in other.lines] == ["a start", "b start"]


@pytest.mark.parametrize("fewer", [{"cooldown": "10min"}, {"merge": "1min"}])
@pytest.mark.parametrize(
    ("filters", "arrives"),
    [
        ({"never": {"phase": "update"}}, ["a start", "a end"]),
        ({"never": [{"phase": ["update", "end"]}, {"camera": "other"}]}, ["a start"]),
        ({"only": {"phase": "single"}}, ["b single"]),
    ],
)
def test_filters_about_phases_go_with_fewer_alerts(
    other: OtherSide, tmp_path: Path, fewer: dict[str, str], filters: dict[str, Any], arrives: list[str]
) -> None:
    """A filter that lets a beginning pass sends it, and one that does not starts no pause."""
    views = [
        incident("a", "start"),
        incident("a", "update", at_s=1),
        incident("b", "single", at_s=2),
        incident("a", "end", at_s=3),
    ]
    with opened(SinkLines, {"port": other.port} | fewer | filters, folder=tmp_path) as stage:
        push(stage, views)
    assert [f"{line['data']['incident']} {line['data']['phase']}" for line in other.lines] == arrives


def test_merging_is_written_only_when_it_changes(other: OtherSide, tmp_path: Path) -> None:
    file = tmp_path / "merging.json"
    with opened(SinkLines, {"port": other.port, "cooldown": "1min"}, folder=tmp_path) as stage:
        push(stage, [incident("a", "start")])
        written_ns = file.stat().st_mtime_ns
        push(stage, [incident("a", "update", at_s=1), incident("a", "end", at_s=2)])
        assert file.stat().st_mtime_ns == written_ns
        push(stage, [incident("b", "start", at_s=3)])
        assert file.stat().st_mtime_ns != written_ns


def test_merging_goes_on_in_the_next_process(other: OtherSide, tmp_path: Path) -> None:
    settings = {"port": other.port, "merge": "1min"}
    with opened(SinkLines, settings, folder=tmp_path) as stage:
        push(stage, [incident("a", "start")])
    with opened(SinkLines, settings, folder=tmp_path) as stage:
        push(stage, [incident("b", "start", at_s=5)])
    assert [(line["data"]["incident"], line["data"]["phase"]) for line in other.lines] == [
        ("a", "start"),
        ("a", "update"),
    ]
    (tmp_path / "merging.json").write_text("[1")
    with opened(SinkLines, settings, folder=tmp_path) as stage:
        push(stage, [incident("c", "start", at_s=6)])
    assert other.lines[-1]["data"]["phase"] == "start"


class Broken(SinkLines):
    def send(self, events: Sequence[EventView]) -> None:
        raise Refused({"another": "no"})


def test_a_sink_that_refuses_what_it_was_not_given_is_told(other: OtherSide, tmp_path: Path) -> None:
    with opened(Broken, {"port": other.port}, folder=tmp_path) as stage:
        with pytest.raises(RuntimeError, match="names none"):
            feed(stage, [A.event])


SAID = "what the other side has said: \x1b]0;owned\x07"


class Fragile(SinkLines):
    """Fails, where `where` says, as a library does at an answer that it does not expect."""

    where: str = ""

    def _fail(self, where: str) -> None:
        if self.where == where:
            raise KeyError(SAID)

    def connect(self) -> None:
        self._fail("connect")
        super().connect()

    def send(self, events: Sequence[EventView]) -> None:
        self._fail("event")
        with self.conversing():
            self._fail("answer")
        super().send(events)

    def disconnect(self) -> None:
        super().disconnect()
        self._fail("disconnect")


@pytest.mark.parametrize("where", ["connect", "answer"])
def test_an_odd_answer_makes_events_wait_and_is_logged_once(other: OtherSide, tmp_path: Path, where: str) -> None:
    with structlog.testing.capture_logs() as lines, delivering(Fragile, {"port": other.port}, tmp_path) as stage:
        stage.where = where
        for event in (A, A, B):
            with pytest.raises(Unavailable, match="KeyError: its answer is not understood") as raised:
                feed(stage, [event.event])
            assert "owned" not in str(raised.value)
        stage.where = ""
        push(stage, [A, B])
        stage.where = where
        stage.close()
        with pytest.raises(Unavailable):
            feed(stage, [C.event])
    assert other.ids == [A.event.id, B.event.id]
    traces = [line for line in lines if line["event"] == "answer_not_understood"]
    assert len(traces) == 2, "once for each time that it began to fail"
    assert "in _fail" in traces[0]["exception"]
    assert "owned" not in str(lines)


def test_what_an_event_breaks_by_itself_is_a_bug_of_the_sink(other: OtherSide, tmp_path: Path) -> None:
    with opened(Fragile, {"port": other.port}, folder=tmp_path) as stage:
        stage.where = "event"
        with pytest.raises(KeyError):
            feed(stage, [A.event])


def test_a_sink_that_cannot_hang_up_costs_no_event(other: OtherSide, tmp_path: Path) -> None:
    other.answers = {A.event.id: ["", ""]}
    with opened(Fragile, {"port": other.port}, folder=tmp_path) as stage:
        stage.where = "disconnect"
        assert push(stage, [A]) >= 2
    assert other.ids == [A.event.id]


def test_an_event_that_is_no_object_is_sent_as_it_is(other: OtherSide, tmp_path: Path) -> None:
    event = Event(A.event.stamp, "x", "x", "single", b'{"id": "x"}')
    with opened(SinkLines, {"port": other.port}, folder=tmp_path) as stage:
        feed(stage, [event])
    assert other.ids == ["x"]
