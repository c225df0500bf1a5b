"""The base of sinks that deliver events to others. A sink defines three methods, and the base does all that is common:

    connect()       make ready to send
    send(events)    return once the other side has the events for good
    disconnect()    let go of the connection

`camgraph help write_a_sink` has a whole sink in forty lines.

- Selection (`only`, `never`), `merge` and `cooldown`.
- If `connect` or `send` raises `Unavailable` or `OSError`, the base disconnects and tries again with growing pauses,
  for ever or until the event `expires`. Later events wait in the outbox, in their order.
- If `connect` raises any other error, no event is to blame: the base does the same, and logs the trace once. Client
  libraries raise such errors at unexpected answers. `with self.conversing():` has the same effect in `send`.
- If `send` raises `Refused`, the named events go to the dead letters (`camgraph outbox`); the others are sent again.
- An event that this process has delivered is not sent again if the event comes again after a death.
"""

from __future__ import annotations

import json
import math
import time
import traceback
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import Field

from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem, NeedsNewProcess, Unavailable, UserError
from camgraph.pipeline.messages import MOST_REPEATED, End, Message
from camgraph.pipeline.stage import Context, Counts
from camgraph.pipeline.system.disk import write_whole
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.stages.messages import Event
from camgraph.stages.sinks.delivery.attempts import USUAL_PAUSES_S, Attempts
from camgraph.stages.sinks.delivery.durations import Duration, seconds
from camgraph.stages.sinks.delivery.event_view import EventView, view_of
from camgraph.stages.sinks.delivery.merging import Merging
from camgraph.stages.sinks.delivery.selection import ANY_PHASE, REPEATED, SelectingSink, Selection, SelectionSettings

_REFUSED, _EXPIRED = "dropped.refused", "dropped.expired"
_KNOWN = 2 * MOST_REPEATED
"""The number of events, the last ones, whose ids the sink remembers to recognise repeated events."""
_UNDERSTOOD = (Unavailable, UserError, EnvironmentProblem, NeedsNewProcess, OSError)
"""Errors of `connect` whose type says what is to be done."""
_MOST_CALLS = 20
"""The calls of a trace in the log: a library that recurses into an answer may make a thousand."""


class DeliverySettings(SelectionSettings):
    """The settings of all sinks that deliver events to others."""

    merge: Duration | None = Field(
        None, description="Incidents of a camera that overlap, or follow each other within this time, are sent as one"
    )
    cooldown: Duration | None = Field(
        None,
        description="After an alert, further incidents of the same rule and camera are left out if they begin within "
        "this time; so are further losses of a camera",
    )
    expires: Duration | None = Field(
        None,
        description="An event that could not be delivered within this time goes to the dead letters; by default it is "
        "tried until the outbox gives it up",
    )


D = TypeVar("D", bound=DeliverySettings)


class Refused(CamgraphError):
    """The other side will never take these events: event id -> why, for people, without secrets."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        super().__init__("; ".join(self.reasons.values()))


class Later(Unavailable):
    """The other side does not take events now, and asks for a pause of `pause_s` seconds."""

    def __init__(self, text: str, pause_s: float) -> None:
        self.pause_s = pause_s
        super().__init__(text)


class EventSink(SelectingSink[D]):
    """See the docstring of the module. `send` has its own thread: a call may take seconds, but less than `hang_s`."""

    settings_type: ClassVar[type[DeliverySettings]] = DeliverySettings
    inputs = Event
    outputs = ()
    counts: ClassVar[Counts] = {
        **SelectingSink.counts,
        "merged": "Ends of incidents that a sink with `merge` has left out, because others of their camera went on.",
        "cooldown": "Events that a sink with `cooldown` has left out.",
        **REPEATED,
        _REFUSED: "The other side of a sink refused this event for good: it is a dead letter (`camgraph outbox`).",
        _EXPIRED: "A sink could not deliver this event within `expires`: it is a dead letter.",
    }
    own_thread = True
    pauses_s: ClassVar[Sequence[float]] = USUAL_PAUSES_S
    """The pauses between failed attempts; the last pause repeats."""

    def __init__(self, settings: D, context: Context) -> None:
        super().__init__(settings, context)
        self._selection = Selection(settings.only, settings.never, settings.time_zone)
        self._merging = Merging(_ns(settings.merge), _ns(settings.cooldown))
        self._attempts = Attempts(self.pauses_s)
        self._vain_tries: dict[str, int] = {}
        """Event id -> the number of failed attempts to deliver the event."""
        self._waiting_times = WaitingTimes()
        self._is_connected = False
        self._kept_merging = b""
        """The state of merging as last written to the file."""
        self._done: OrderedDict[str, None] = OrderedDict()
        """Ids of the last events that were delivered, left out or refused."""
        self._buried = ""
        """The id of the last event that went to the dead letters."""
        self._is_trace_logged = False
        """Whether a trace was logged since the last success."""
        self._done_of_call: set[str] = set()
        """Ids already delivered from the current batch; the whole batch comes again until all are delivered."""

    # ---- for a sink to define

    def connect(self) -> None:
        """Make ready to send. Called before `send`, again after `disconnect`. Raises Unavailable or OSError."""

    @abstractmethod
    def send(self, events: Sequence[EventView]) -> None:
        """Deliver all events, in this order; return once the other side has them for good.

        Raises Unavailable, Later or OSError if the other side does not take events now: each event that was not
        `sent_already` comes again. Raises Refused with the events that the other side will never take.
        """

    def disconnect(self) -> None:
        """Let go of the connection. Called after each failure, also one of `connect`, and at the end."""

    def is_gone(self) -> bool:
        """Whether the other side has hung up since the last `send`: the base then connects anew, without a pause."""
        return False

    def try_out(self, event: Event) -> None:
        """Send one event at once, whatever filters and pauses say. Raises as `send`; after Unavailable, call again."""
        view = view_of(event)
        try:
            self._send([view])
        except Unavailable as error:
            if not error.patient:
                self._disconnect()
            raise
        except OSError:
            self._disconnect()
            raise

    def would_send(self, event: Event) -> bool:
        """Whether the filters of the sink let this event pass, in some phase of its incident."""
        view = view_of(event)
        return self._selection.fits(view, phase=ANY_PHASE if view.kind == "incident" else None)

    @property
    def other_side(self) -> str:
        """The address of the other side, for people; "" if there is none."""
        return ""

    # ---- for `send` to call

    @contextmanager
    def conversing(self) -> Iterator[None]:
        """Turn each error within the block into Unavailable, so that events wait: the other side's answer is to blame.

        Write the block around calls of a client library. Prepare before the block what an event alone could make fail.
        """
        try:
            yield
        except (*_UNDERSTOOD, Refused):
            raise
        except Exception as error:  # noqa: BLE001 - a library may fail in any way at an answer that it does not expect
            raise self.not_understood(error) from None

    def sent_already(self, view: EventView) -> None:
        """Note that this event has arrived: it does not come again, even if `send` fails with the other events."""
        self._finished(view, "written")

    def waited_s(self, view: EventView) -> float:
        """For how many seconds this event has waited. A clock that is set meanwhile does not change the result."""
        return self._waiting_times.of(view.event, time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME))

    def not_understood(self, error: Exception) -> Unavailable:
        """The error to raise for an error of a library if no event is to blame. The trace goes to the log.

        The text of the library's error stays out, since the other side may have written that text.
        """
        self._log_trace(error)
        where = f"{self.other_side}: " if self.other_side else ""
        return Unavailable(
            f"{where}{type(error).__name__}: its answer is not understood (is it such a server?), or the sink has a "
            "bug: the log has the trace"
        )

    # ---- the stage

    def open(self) -> None:
        if self._merging.is_on and self._state_file.exists():
            try:
                self._merging.take(json.loads(self._state_file.read_text()))
            except (ValueError, KeyError, TypeError) as error:
                self.context.log.warning("merging_begins_anew", file=str(self._state_file), why=str(error))

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        """Deliver the items. Raises Unavailable while the other side is away; then all items come again."""
        views = [view_of(item) for item in items if not self._is_known(item)]
        if self._merging.is_on:  # one event after the other: a decision depends on the events before
            for view in views:
                for wanted in self._wanted([view]):
                    self._deliver_merged(wanted)
        else:
            self._deliver(self._wanted(views))
        self._done_of_call.clear()
        return ()

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        """No more events come."""
        self._disconnect()
        return ()

    def close(self) -> None:
        self._disconnect()

    # ---- which events

    def _is_known(self, event: Event) -> bool:
        if event.id not in self._done:
            return False
        if event.id not in self._done_of_call:
            self.context.count("repeated", event.stamp.camera)
        return True

    def _wanted(self, views: Sequence[EventView]) -> list[EventView]:
        return self._unexpired([view for view in views if not self._leaves_out(view)])

    def _leaves_out(self, view: EventView) -> bool:
        """Whether the filters leave the event out. If merging follows the event's incident, they are asked later."""
        if self._merging.is_following(view) or self._selection.fits(view, phase=self._any_phase(view)):
            return False
        self._finished(view, "filtered")
        return True

    def _any_phase(self, view: EventView) -> str | None:
        """The phase for the filters: any, if merging may still turn the start of an incident into an update."""
        return ANY_PHASE if self._merging.is_on and view.kind == "incident" else None

    def _unexpired(self, views: Sequence[EventView]) -> list[EventView]:
        """The events that are not older than `expires`. The others go to the dead letters."""
        expires_s = seconds(self.settings.expires) if self.settings.expires else math.inf
        late = [view for view in views if self.waited_s(view) > expires_s]
        for view in late:
            self._keep_dead_letter(
                view, _EXPIRED, f"not delivered within {self.settings.expires}: {self._attempts.why}".rstrip(": ")
            )
        return [view for view in views if view not in late]

    # ---- delivering

    def _deliver_merged(self, view: EventView) -> None:
        """Deliver one event as merging decides. Merging remembers the event only once it is delivered or left out."""
        decision = self._merging.decide(view)
        is_sent = decision.what != "leave_out" and self._selection.fits(view, phase=decision.phase)
        if not is_sent:
            self._finished(view, decision.why or "filtered")
        else:
            joins = decision.what == "join"
            self._deliver([_with_body(view, self._merging.joined(view, decision)) if joins else view])
            if view.event.id == self._buried:
                return
        self._merging.done(view, decision, is_sent=is_sent)
        self._keep_merging()

    def _deliver(self, views: Sequence[EventView]) -> None:
        """Send these events. Refused events go to the dead letters. Raises Unavailable."""
        while views:
            if not self._attempts.may_try(time.monotonic()):
                raise self._still_away()
            self._attempt(views)
            views = [view for view in views if view.event.id not in self._done]

    def _attempt(self, views: Sequence[EventView]) -> None:
        """Send the events once. At least one event is done afterwards. Raises Unavailable."""
        try:
            self._send(views)
        except Refused as error:
            self._bury_refused(views, error)
        except (Unavailable, OSError) as error:
            if isinstance(error, Unavailable) and error.patient:
                raise
            self._disconnect()
            for view in views:
                if view.event.id not in self._done:
                    self._vain_tries[view.event.id] = self._vain_tries.get(view.event.id, 0) + 1
            pause_s = error.pause_s if isinstance(error, Later) else 0.0
            self._attempts.failed(time.monotonic(), redact_urls(str(error) or type(error).__name__), pause_s)
            raise self._still_away() from None
        else:
            for view in views:
                if view.event.id not in self._done:
                    self._finished(view, "written")
        self._attempts.succeeded()
        self._is_trace_logged = False

    def _send(self, views: Sequence[EventView]) -> None:
        if self._is_connected and self.is_gone():
            self._disconnect()
        if not self._is_connected:
            self._make_ready()
            self._is_connected = True
        self.send(views)

    def _make_ready(self) -> None:
        try:
            self.connect()
        except _UNDERSTOOD:
            raise
        except Exception as error:  # noqa: BLE001 - no event is to blame for it
            raise self.not_understood(error) from None

    def _log_trace(self, error: Exception) -> None:
        """Log the trace of an error, at most once until an event is delivered."""
        if not self._is_trace_logged:
            calls = "".join(traceback.format_tb(error.__traceback__, limit=-_MOST_CALLS))
            self.context.log.error("answer_not_understood", error=type(error).__name__, exception=calls)
            self._is_trace_logged = True

    def _bury_refused(self, views: Sequence[EventView], error: Refused) -> None:
        """Make dead letters of the refused events. Raises RuntimeError if `error` names none of `views`.

        A sink that names other events would try for ever.
        """
        refused = [view for view in views if view.event.id in error.reasons]
        if not refused:
            raise RuntimeError(f"Refused names none of the events that were sent: {error}")
        for view in refused:
            self._keep_dead_letter(view, _REFUSED, error.reasons[view.event.id])

    def _still_away(self) -> Unavailable:
        wait_s = self._attempts.next_s - time.monotonic()
        again = f"; next try in {wait_s:.0f} s, after {self._attempts.failures} failures" if wait_s > 1.5 else ""
        return Unavailable(self._attempts.why + again)

    def _disconnect(self) -> None:
        self._is_connected = False
        try:
            self.disconnect()
        except (OSError, Unavailable):
            pass
        except Exception as error:  # noqa: BLE001 - what was half connected may fail in any way; no event is to blame
            self._log_trace(error)

    # ---- what became of them

    def _keep_dead_letter(self, view: EventView, counter: str, why: str) -> None:
        """Make a dead letter of an event that is given up. `camgraph outbox` shows and requeues dead letters."""
        why = redact_urls(why)
        attempts = self._vain_tries.get(view.event.id, 0) + (counter == _REFUSED)
        self.context.dead_letters.add(view.event, why, attempts=attempts)
        event = view.event
        self.context.log.error(
            "event_not_delivered", camera=view.camera, id=event.own_id, incident=event.incident, why=why
        )
        self._buried = view.event.id
        if self._merging.is_on:
            self._merging.given_up(view)
            self._keep_merging()
        self._finished(view, counter)

    def _finished(self, view: EventView, count: str) -> None:
        self.context.count(count, view.event.stamp.camera)
        self._vain_tries.pop(view.event.id, None)
        self._done[view.event.id] = None
        self._done_of_call.add(view.event.id)
        while len(self._done) > _KNOWN:
            self._done.popitem(last=False)

    def _keep_merging(self) -> None:
        """Write the state of merging for the next process. On a full disk, that process lacks the last changes."""
        state = json.dumps(self._merging.state()).encode()
        if state == self._kept_merging:
            return
        try:
            write_whole(self._state_file, state)
            self._kept_merging = state
        except OSError as error:
            self.context.log.warning("merging_not_kept", file=str(self._state_file), why=error.strerror)

    @property
    def _state_file(self) -> Path:
        return self.context.state_folder / "merging.json"


def _ns(duration: str | None) -> int:
    return round(seconds(duration) * 1e9) if duration else 0


def _with_body(view: EventView, body: Mapping[str, Any]) -> EventView:
    line = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    return EventView(replace(view.event, body=line), body)


class WaitingTimes:
    """How long events have waited for their delivery, even if the clock of this machine is set meanwhile. Pure.

    The clock gives the age of an event once, when the event first comes here. From then on, the age grows with
    `steady_ns`, so a clock that is set while a receiver is away makes no event old. `wall_ns` is UTC since 1970;
    `steady_ns` is of a clock that is never set and goes on while the machine sleeps (CLOCK_BOOTTIME).
    """

    def __init__(self) -> None:
        self._since: OrderedDict[str, int] = OrderedDict()
        """Event id -> when the event was committed, by the clock of `steady_ns`."""

    def of(self, event: Event, wall_ns: int, steady_ns: int) -> float:
        """Seconds since the outbox committed the event; if that time is unknown, since the event first came here."""
        since_ns = self._since.get(event.id)
        if since_ns is None:
            age_ns = max(0, wall_ns - event.committed_ns) if event.committed_ns else 0
            since_ns = self._since[event.id] = steady_ns - age_ns
            if len(self._since) > _KNOWN:
                self._since.popitem(last=False)
        return (steady_ns - since_ns) / 1e9
