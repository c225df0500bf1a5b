"""Runs one stage by hand, or a whole plan: for tests, also of other packages' stages.

`opened` and `feed` call a stage as the runtime does, in this thread and without a graph:

    from camgraph.pipeline.messages import Message
    from camgraph.pipeline.stage import Settings, Stage
    from camgraph.pipeline.testing import feed, opened, reports_of, stamp


    class EveryOther(Stage[Settings]):
        inputs = Message
        outputs = (Message,)
        counts = {"skipped.odd": "Messages of an odd number."}

        def process(self, items):
            for item in items:
                if item.stamp.seq % 2 == 0:
                    yield item
                else:
                    self.context.count("skipped.odd", item.stamp.camera)


    def test_every_other(tmp_path):
        with opened(EveryOther, {}, folder=tmp_path) as stage:
            kept = feed(stage, [Message(stamp(seq)) for seq in range(5)])
        assert [message.stamp.seq for message in kept] == [0, 2, 4]
        assert reports_of(stage).counts == {("skipped.odd", "cam"): 2}
"""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from threading import Thread
from typing import Any, Literal, ParamSpec, Protocol, TypeVar
from unittest import SkipTest
from unittest.mock import patch

import structlog

from camgraph.pipeline import single_stage
from camgraph.pipeline.errors import BadItem, EnvironmentProblem, Unavailable
from camgraph.pipeline.local import LocalRun
from camgraph.pipeline.messages import Event, Message
from camgraph.pipeline.monitoring.outcome import Outcome
from camgraph.pipeline.monitoring.run_status import as_json
from camgraph.pipeline.outbox.outbox_folder import outbox_held
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.run_view import RunView
from camgraph.pipeline.single_stage import AnyStage, HandContext, reports_of, stamp
from camgraph.pipeline.stage import DROPPED, Stage
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.system.run_folder import RunFolder

__all__ = [
    "HandContext",
    "Receiver",
    "SinkCase",
    "SinkContract",
    "event",
    "feed",
    "hand_in",
    "hit",
    "letters",
    "opened",
    "refusal",
    "reports_of",
    "run_graph",
    "stamp",
    "until",
]

T = TypeVar("T")
P = ParamSpec("P")
WITHIN_S = 60.0
"""Far more than any condition needs on a quiet machine, for the machine may be five times slower."""
_EVERY_S = 0.01


@contextmanager
def opened(
    stage_class: type[AnyStage], settings: Mapping[str, Any], *, folder: Path, **context: Any
) -> Iterator[AnyStage]:
    """The stage, opened with these settings; closed at the end. `folder` serves as base and state folder.

    Raises TypeError at the end for a counter that the stage does not declare (`Stage.counts`).
    """
    with single_stage.opened(stage_class, settings, folder=folder, **context) as stage:
        yield stage
    _require_declared(stage, (name for name, _ in reports_of(stage).counts))


def feed(stage: Stage[Any], items: Sequence[Any], *, batch: int = 1, end: bool = False) -> list[Message]:
    """Return all that `stage` makes of `items`, handed in by `batch`; with `end`, also of the end of each camera.

    Raises TypeError for an output of a type that the stage does not declare, as the runtime does, and for a reason of
    `BadItem` that is not among its `counts`.
    """
    try:
        return single_stage.feed(stage, items, batch=batch, end=end)
    except BadItem as bad:
        _require_declared(stage, [f"{DROPPED}{bad.reason}"])
        raise


def _require_declared(stage: Stage[Any], counters: Iterable[str]) -> None:
    """Raises TypeError for a counter that is not among those that the stage declares."""
    # Any name may stand in place of the capitals of `judged.RULE`.
    parts = (name.rpartition(".") for name in stage.counts)
    beginnings = tuple(start + dot for start, dot, last in parts if dot and last.isupper())
    for name in counters:
        if name not in stage.counts and not name.startswith(beginnings):
            known = ", ".join(stage.counts) or "none"
            raise TypeError(f"counted {name}, which is not among its declared `counts` ({known})")


def until(
    condition: Callable[[], T],
    within_s: float = WITHIN_S,
    why: Callable[[], object] | None = None,
    every_s: float = 0.001,
) -> T:
    """Return what the condition returns, as soon as that is true. `why` tells how things stand if it never is.

    Set `every_s` higher if the condition asks another process or reads much. Raises AssertionError after `within_s`.
    """
    end = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, f"not so within {within_s:g} s{f': {why()}' if why else ''}"
        time.sleep(every_s)
    return found


def event(
    number: int,
    camera: str = "cam",
    *,
    phase: Literal["start", "update", "end", "single"] = "single",
    incident: str = "",
    **data: Any,
) -> Event:
    """The event `e<number>`: a fall, so many seconds after noon, with as much of its body as sinks look at.

    `incident`: the one that the event belongs to, by default one of its own. `data`: facts in place of the usual ones.
    """
    name, at = incident or f"i{number}", f"2026-01-01T12:{number // 60 % 60:02}:{number % 60:02}.000Z"
    facts = {"incident": name, "phase": phase, "rule": {"id": "fall", "hash": "0"}, "action": "fall"}
    body = {
        "specversion": "1.0",
        "id": f"e{number}",
        "source": "camgraph/test",
        "type": f"camgraph.incident.{phase}",
        "subject": camera,
        "time": at,
        "datacontenttype": "application/json",
        "data": {**facts, "camera": camera, "severity": "alarm", "start_time": at, **data},
    }
    return Event(stamp(number, camera), f"e{number}", name, phase, json.dumps(body).encode())


def hand_in(
    sink: Stage[Any], events: Sequence[Event], *, batch: int = 10, at: Callable[[int], None] = lambda _: None
) -> list[str]:
    """Hand in batches, each until the sink takes it, as the runtime does: why it did not, each time.

    A sink that only asks for patience gives no reason. `at` is called before each batch with the number of its first
    event.
    """
    reasons: list[str] = []
    for first in range(0, len(events), batch):
        at(first)
        until(functools.partial(_is_taken, sink, events[first : first + batch], reasons), every_s=_EVERY_S)
    return reasons


def _is_taken(sink: Stage[Any], events: Sequence[Event], reasons: list[str]) -> bool:
    try:
        list(sink.process(events))
    except (Unavailable, EnvironmentProblem) as error:
        if not getattr(error, "patient", False):
            reasons.append(str(error))
        return False
    return True


def refusal(sink: Stage[Any], events: Sequence[Event]) -> str:
    """Why the sink does not take these events now, once it is not just busy. Raises AssertionError if it takes them."""

    def why() -> str:
        reasons: list[str] = []
        assert not _is_taken(sink, events, reasons), "the sink takes the events"
        return "".join(reasons)

    return until(why, every_s=_EVERY_S)


def letters(sink: Stage[Any]) -> dict[str, str]:
    """The dead letters of a sink: id of the event -> why."""
    return {letter.event.id: letter.why for letter in reports_of(sink).dead_letters}


def hit(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to this one process. A process that is dead has the id 0 here, which would mean our whole group."""
    assert pid > 1, f"there is no process to send a signal to: {pid}"
    os.kill(pid, number)


def run_graph(
    plan: RunPlan, during: Callable[[Supervisor], None] | None = None, *, limit_s: float = 120.0
) -> tuple[Outcome, dict[str, Any]]:
    """Run a plan to its end in real processes (or in this one, as it says): how it ended, and its last status, with
    the plain values of `camgraph status --json`.

    `during` is called about ten times a second with the supervisor, and may do it harm. A run that takes longer than
    `limit_s` is stopped and fails the test.
    """
    if plan.in_process:
        with outbox_held(plan):
            local = LocalRun(plan)
            return local.run(), _plain(local)
    folder = RunFolder(plan.graph)
    late = time.monotonic() + limit_s

    def poll(supervisor: Supervisor) -> None:
        if during:
            during(supervisor)
        if time.monotonic() > late:
            supervisor.outcome.add(-1, f"not over after {limit_s:g} s: {supervisor.status()}")
            supervisor.stop()
            supervisor.stop()

    with closing(folder), outbox_held(plan):
        supervisor = Supervisor(plan, folder, poll)
        return supervisor.run(), _plain(supervisor)


def _plain(run: RunView) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(as_json(run.status())))
    return plain


# ---- what every sink promises


class Receiver(Protocol):
    """The other side of a sink, in a test."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of a sink that delivers to this receiver."""

    def arrived(self) -> Sequence[str]:
        """The ids of all events that have arrived until now, in this order, those before a `stop` as well."""

    def stop(self) -> None:
        """Be away for the sink at once, as after a power cut: a server that is killed, a file that somebody locks.

        A receiver that first reads what is on its way hides that the sink loses events.
        """

    def start(self) -> None:
        """Be there again; return once a sink can reach the receiver."""


@dataclass(frozen=True)
class SinkCase:
    """A sink of yours and its other side, for `SinkContract`. What you leave out is not tried."""

    sink: type[Stage[Any]]
    receiver: Callable[[Path], AbstractContextManager[Receiver]]
    """Starts the receiver, with its files in this folder."""
    stops: bool = True
    """Whether the receiver can be away while the sink is open."""
    comes_later: bool = True
    """Whether a sink may be opened while the receiver is away. A sink that writes a file may refuse to."""
    confirms: bool = True
    """Whether the receiver confirms events, so that none is lost if the receiver goes."""
    keeps: bool = True
    """Whether a receiver that is killed still has each event that it has confirmed."""
    once: bool = False
    """Whether an event that comes again behind a restart of the sink arrives once."""
    refused: Event | None = None
    """An event that the sink can never deliver, such as `event(9999, "a", text="x" * 70_000)`, which is too large. The
    contract sends the events 0 to 199 itself.
    """
    why_refused: str = ""
    """What its dead letter says, at least in part."""
    at: Callable[[str, int], Mapping[str, Any]] | None = None
    """The settings for a receiver at this host and TCP port."""
    answers: bool = True
    """Whether such a receiver says something, so that a silent or a wrong one is told from it."""
    secrets: Sequence[str] = ()
    """Parts of these settings that no error and no log may show."""

    @contextmanager
    def opened(
        self, settings: Mapping[str, Any], folder: Path, *, incarnation: int = 1, **more: Any
    ) -> Iterator[Stage[Any]]:
        """The sink with these settings and `more`; it tries again without a pause. Its state is in `folder/state`."""
        state = folder / "state"
        state.mkdir(exist_ok=True)
        context = HandContext(folder, state, incarnation=incarnation, cameras=("a", "b"))
        with patch.object(self.sink, "pauses_s", (0.0,), create=True):
            sink = self.sink(self.sink.settings_type.model_validate({**settings, **more}), context)
        try:
            sink.open()
            yield sink
        finally:
            sink.close()
        _require_declared(sink, (name for name, _ in context.counts))


def _needs(part: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Skips a promise for a case without this part."""

    def decorated(test: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(test)
        def tried(*args: P.args, **named: P.kwargs) -> None:
            if not getattr(named["case"], part):
                raise SkipTest(f"the case has no `{part}`")
            test(*args, **named)

        tried.needs = {part, *getattr(test, "needs", ())}  # type: ignore[attr-defined]
        return tried

    return decorated


class SinkContract:
    """The promises of every sink, a test each: derive `TestYourSink`, with a `SinkCase` as the parameter `case`.

    `camgraph help write_a_sink` has a whole one.
    """

    def test_events_arrive_once_and_in_order(self, case: SinkCase, tmp_path: Path) -> None:
        with case.receiver(tmp_path) as other, case.opened(other.settings, tmp_path) as sink:
            hand_in(sink, _SENT[:4], batch=2)
            if "repeated" in sink.counts:
                hand_in(sink, _SENT[2:4])
            hand_in(sink, _SENT[4:])
            _await(other, _SENT)
            _assert_once(other)
            counts = reports_of(sink).counts
            assert (counts["written", "a"], counts["written", "b"]) == (4, 4), "count each event as `written`"

    @_needs("comes_later")
    @_needs("stops")
    def test_events_wait_for_a_receiver_that_comes_later(self, case: SinkCase, tmp_path: Path) -> None:
        with case.receiver(tmp_path) as other:
            other.stop()
            with structlog.testing.capture_logs() as lines, case.opened(other.settings, tmp_path) as sink:
                why = refusal(sink, _SENT)
                _assert_nothing_happened(sink)
                _assert_no_secret(case, f"{why}{lines}")
                other.start()
                hand_in(sink, _SENT)
                _await(other, _SENT)
            _assert_once(other)

    @_needs("confirms")
    @_needs("stops")
    def test_events_wait_for_a_receiver_that_goes_and_comes_back(self, case: SinkCase, tmp_path: Path) -> None:
        with case.receiver(tmp_path) as other, case.opened(other.settings, tmp_path) as sink:
            hand_in(sink, _SENT[:4])
            _await(other, _SENT[:4])
            other.stop()
            assert refusal(sink, _SENT[4:])
            other.start()
            hand_in(sink, _SENT[4:])
            _await(other, _SENT)
            _assert_once(other)
            assert letters(sink) == {}, "an event was given up although only its receiver was away"

    @_needs("keeps")
    @_needs("confirms")
    @_needs("stops")
    def test_a_receiver_that_is_killed_amid_a_stream_loses_no_event(self, case: SinkCase, tmp_path: Path) -> None:
        many = _events(200)
        with case.receiver(tmp_path) as other, case.opened(other.settings, tmp_path) as sink:
            with _struck(other, lambda: len(other.arrived()) > 30):
                hand_in(sink, many)
            _await(other, many)

    def test_a_sink_that_is_started_again_loses_no_event(self, case: SinkCase, tmp_path: Path) -> None:
        """The process of the sink has died, and the outbox hands over again what it does not know to be delivered."""
        with case.receiver(tmp_path) as other:
            with case.opened(other.settings, tmp_path) as sink:
                hand_in(sink, _SENT[:4])
                _await(other, _SENT[:4])
            with case.opened(other.settings, tmp_path, incarnation=2) as sink:
                hand_in(sink, _SENT[2:])
                _await(other, _SENT)
            if case.once:
                _assert_once(other)

    def test_a_damaged_file_of_state_costs_no_event(self, case: SinkCase, tmp_path: Path) -> None:
        with case.receiver(tmp_path) as other:
            with case.opened(other.settings, tmp_path) as sink:
                hand_in(sink, _SENT[:2])
                _await(other, _SENT[:2])
            for number, damage in enumerate((b"", b"{", b"[1]", b"\0\xff" * 50, b'{"version": 99}'), start=2):
                files = [file for file in (tmp_path / "state").rglob("*") if file.is_file()]
                if not files:
                    return  # this sink remembers nothing
                for file in files:
                    file.write_bytes(damage)
                with case.opened(other.settings, tmp_path, incarnation=number) as sink:
                    hand_in(sink, _SENT[number : number + 1])
                    _await(other, _SENT[: number + 1])

    @_needs("refused")
    def test_an_event_that_cannot_be_delivered_is_a_dead_letter(self, case: SinkCase, tmp_path: Path) -> None:
        assert case.refused
        assert case.refused.id not in _ids(_SENT), (
            "the contract sends an event of the id of `refused`: take event(9999)"
        )
        with case.receiver(tmp_path) as other, case.opened(other.settings, tmp_path) as sink:
            hand_in(sink, [_SENT[0], case.refused, *_SENT[1:]])
            _await(other, _SENT)
            assert list(letters(sink)) == [case.refused.id], "raise `Refused` for an event that will never be taken"
            assert case.why_refused in letters(sink)[case.refused.id]
            assert reports_of(sink).counts["dropped.refused", case.refused.stamp.camera] == 1

    def test_filters_leave_out_events(self, case: SinkCase, tmp_path: Path) -> None:
        wanted = [one for one in _SENT if one.stamp.camera == "b"]
        with case.receiver(tmp_path) as other, case.opened(other.settings, tmp_path, only={"camera": "b"}) as sink:
            hand_in(sink, _SENT)
            _await(other, wanted)
            assert reports_of(sink).counts == {("written", "b"): 4, ("filtered", "a"): 4}

    def test_a_trial_arrives_though_filters_leave_it_out(self, case: SinkCase, tmp_path: Path) -> None:
        """`camgraph sinks test`, for sinks that send to others."""
        with case.receiver(tmp_path) as other, case.opened(other.settings, tmp_path, only={"camera": "c"}) as sink:
            if hasattr(sink, "try_out"):
                until(lambda: _is_tried_out(sink, _SENT[0]), every_s=_EVERY_S)
                _await(other, _SENT[:1])

    @_needs("at")
    def test_events_wait_while_nobody_listens(self, case: SinkCase, tmp_path: Path) -> None:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            port = nobody.getsockname()[1]
            assert str(port) in self._assert_waits(case, tmp_path, "127.0.0.1", port), "say where nobody listens"

    @_needs("at")
    def test_events_wait_for_a_host_that_nobody_knows(self, case: SinkCase, tmp_path: Path) -> None:
        why = self._assert_waits(case, tmp_path, "nobody.invalid", 9)
        assert "nobody.invalid" in why, "name the host that is not found"

    @_needs("answers")
    @_needs("at")
    def test_a_sink_closes_while_its_receiver_is_silent(self, case: SinkCase, tmp_path: Path) -> None:
        """pytest-timeout ends a sink that waits for ever."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self._assert_waits(case, tmp_path, "127.0.0.1", silent.getsockname()[1])

    @_needs("answers")
    @_needs("at")
    def test_events_wait_for_a_server_that_talks_nonsense(self, case: SinkCase, tmp_path: Path, capfd: Any) -> None:
        """A server that is none, or of another kind, hangs up behind its nonsense."""
        with _nonsense() as port:
            self._assert_waits(case, tmp_path, "127.0.0.1", port, times=len(_NONSENSE))
        assert capfd.readouterr() == ("", ""), "a client library writes to the terminal: silence it"

    @staticmethod
    def _assert_waits(case: SinkCase, folder: Path, host: str, port: int, *, times: int = 2) -> str:
        """No event is lost at this address, and neither a secret told nor what is said there: why events wait."""
        assert case.at
        with structlog.testing.capture_logs() as lines, case.opened(case.at(host, port), folder) as sink:
            why = [refusal(sink, _SENT[:2]) for _ in range(times)][-1]
            _assert_nothing_happened(sink)
            if hasattr(sink, "try_out"):
                assert not _is_tried_out(sink, _SENT[0]), "a trial that has not arrived counts as arrived"
        _assert_no_secret(case, f"{why}{lines}")
        assert _STEERS not in f"{why}{lines}", (
            "an error or a log line has text of the other side, which may steer a terminal"
        )
        assert [line["event"] for line in lines].count("answer_not_understood") <= 1, "each try is logged"
        return why


_STEERS = "\x1b]0;owned\x07"
_NONSENSE = (b"x" * 70_000, f"SSH-2.0-{_STEERS}\r\n".encode(), bytes(range(256)) * 20 + b"\r\n", bytes(5000))


def _events(count: int) -> list[Event]:
    """Events of two cameras, in turn."""
    return [event(number, "ab"[number % 2]) for number in range(count)]


_SENT = _events(8)


def _ids(events: Sequence[Event]) -> list[str]:
    return [one.own_id for one in events]


def _await(other: Receiver, events: Sequence[Event]) -> None:
    """All of these arrive, and no other, and those of each camera in their order, apart from repetitions."""
    until(lambda: set(other.arrived()) >= set(_ids(events)), every_s=_EVERY_S, why=lambda: _missing(other, events))
    unique = list(dict.fromkeys(other.arrived()))
    for camera in {one.stamp.camera for one in events}:
        wanted = _ids([one for one in events if one.stamp.camera == camera])
        assert [one for one in unique if one in set(wanted)] == wanted, f"events of camera {camera} are out of order"
    assert len(unique) == len(events), "an event has arrived that nobody has sent"


def _missing(other: Receiver, events: Sequence[Event]) -> str:
    arrived = other.arrived()
    missing = [one for one in _ids(events) if one not in arrived]
    return f"{missing} did not arrive, although the sink took them; what arrived: {list(arrived)}"


def _assert_once(other: Receiver) -> None:
    assert len(other.arrived()) == len(set(other.arrived())), f"an event has arrived twice: {other.arrived()}"


def _assert_nothing_happened(sink: Stage[Any]) -> None:
    assert letters(sink) == {}, "an event was given up although only its receiver is away: raise `Unavailable`"
    assert not reports_of(sink).counts, "an event counts as done although nobody has it"


def _assert_no_secret(case: SinkCase, said: str) -> None:
    assert not [one for one in case.secrets if one in said], "an error or a log line shows a secret"


def _is_tried_out(sink: Any, one: Event) -> bool:
    try:
        sink.try_out(one)
    except (Unavailable, OSError):
        return False
    return True


@contextmanager
def _struck(other: Receiver, when: Callable[[], bool]) -> Iterator[None]:
    """Within, the receiver goes as soon as `when` holds, in the middle of whatever is done, and comes again."""
    failed: list[BaseException] = []

    def strike() -> None:
        try:
            until(when, every_s=0.005)
            other.stop()
            other.start()
        except BaseException as error:  # noqa: BLE001 - for the test to raise
            failed.append(error)

    thread = Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]


@contextmanager
def _nonsense() -> Iterator[int]:
    """The port of a server that says something else to each client, and hangs up."""
    said = cycle(_NONSENSE)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        connection.sendall(next(said))
                        connection.shutdown(socket.SHUT_WR)
                        connection.settimeout(WITHIN_S)
                        while connection.recv(1 << 16):
                            pass

        thread = Thread(target=serve)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()
