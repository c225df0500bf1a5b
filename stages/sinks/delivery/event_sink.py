"""The base of sinks that deliver events to others. It has all that is the same for each of them:

    connect()       make ready to send
    send(events)    return once the other side has them for good
    disconnect()    let go of the connection

`camgraph help write_a_sink` has a whole sink in forty lines.

- Selection (`only`, `never`), `merge` and `cooldown`.
- If `connect` or `send` raises `Unavailable` or `OSError`, the base disconnects and tries again with growing pauses,
  for ever or until the event `expires`. Later events wait in the outbox, in their order.
- If `connect` raises anything else, that is no fault of an event either: the same, and the log has the trace, once. A
  client library fails so at answers that it does not expect. `with self.conversing():` says it of a part of `send`.
- If `send` raises `Refused`, these events go to the dead letters (`camgraph outbox`), and the others are sent again.
- Events that come again after a death are not sent twice, as far as this process knows them.
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
"""So many events are known again by their ids."""
_UNDERSTOOD = (Unavailable, UserError, EnvironmentProblem, NeedsNewProcess, OSError)
"""Errors of `connect` that say by themselves what is to be done."""
_MOST_CALLS = 20
"""Of a trace: a library that recurses into an answer has a thousand."""


class DeliverySettings(SelectionSettings):
    """The settings that all sinks have which deliver events to others."""

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
    """The other side does not take events now, and asks for a pause of so many seconds."""

    def __init__(self, text: str, pause_s: float) -> None:
        self.pause_s = pause_s
        super().__init__(text)


class EventSink(SelectingSink[D]):
    """See the module. `send` runs in a thread of its own: it may take some seconds, but stay below `hang_s`."""

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
    """From one failed attempt to the next; the last is kept."""

    def __init__(self, settings: D, context: Context) -> None:
        super().__init__(settings, context)
        self._selection = Selection(settings.only, settings.never, settings.time_zone)
        self._merging = Merging(_ns(settings.merge), _ns(settings.cooldown))
        self._attempts = Attempts(self.pauses_s)
        self._vain_tries: dict[str, int] = {}
        """Id of an event that was tried in vain -> how often."""
        self._waiting_times = WaitingTimes()
        self._is_connected = False
        self._kept_merging = b""
        """The state of merging, as the file has it."""
        self._done: OrderedDict[str, None] = OrderedDict()
        """Ids of the last events that were delivered, left out or refused."""
        self._buried = ""
        """The id of the last event that went to the dead letters."""
        self._is_trace_logged = False
        """Since the last success."""
        self._done_of_call: set[str] = set()
        """Those done since `process` was last called with other items: the same ones come again until all are done."""

    # ---- for a sink to define

    def connect(self) -> None:
        """Make ready to send. Called before `send`, again after `disconnect`. Raises Unavailable or OSError."""

    @abstractmethod
    def send(self, events: Sequence[EventView]) -> None:
        """Deliver all of these, in this order; return once the other side has them for good.

        Raises Unavailable, Later or OSError if it does not take them now: all that were not `sent_already` come again.
        Raises Refused with those that it will never take.
        """

    def disconnect(self) -> None:
        """Let go of the connection; also called after `connect` has failed, and at the end."""

    def is_gone(self) -> bool:
        """Whether the other side has hung up since the last `send`: the next one connects anew, without a pause."""
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
        """Whether its filters let this event pass, in some phase of its incident."""
        view = view_of(event)
        return self._selection.fits(view, phase=ANY_PHASE if view.kind == "incident" else None)

    @property
    def other_side(self) -> str:
        """The address for people, if it has one."""
        return ""

    # ---- for `send` to call

    @contextmanager
    def conversing(self) -> Iterator[None]:
        """Within, whatever is raised comes from the answers of the other side: it becomes Unavailable, so events wait.

        Write it around calls of a client library, and prepare beforehand what the event alone could make fail.
        """
        try:
            yield
        except (*_UNDERSTOOD, Refused):
            raise
        except Exception as error:  # noqa: BLE001 - a library may fail in any way at an answer that it does not expect
            raise self.not_understood(error) from None

    def sent_already(self, view: EventView) -> None:
        """This event has arrived, whatever becomes of the others of the call: it will not come again."""
        self._finished(view, "written")

    def waited_s(self, view: EventView) -> float:
        """For how long this event has waited for its delivery. A clock that is set meanwhile changes nothing."""
        return self._waiting_times.of(view.event, time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME))

    def not_understood(self, error: Exception) -> Unavailable:
        """The error to raise for one of a library, if no event is to blame for it: the trace goes to the log.

        Its text stays out, since that may be a text of the other side.
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
        """Raises Unavailable while the other side is away: the same items come again, the delivered ones are known."""
        views = [view_of(item) for item in items if not self._is_known(item)]
        if self._merging.is_on:  # one after the other: what becomes of one depends on those before
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
        """Whether the filters leave it out; if merging is on, they are asked later about what it follows."""
        if self._merging.is_following(view) or self._selection.fits(view, phase=self._any_phase(view)):
            return False
        self._finished(view, "filtered")
        return True

    def _any_phase(self, view: EventView) -> str | None:
        """With merging, incidents of all phases are looked at: a start may become an update."""
        return ANY_PHASE if self._merging.is_on and view.kind == "incident" else None

    def _unexpired(self, views: Sequence[EventView]) -> list[EventView]:
        """Those that are not too old; the others go to the dead letters."""
        expires_s = seconds(self.settings.expires) if self.settings.expires else math.inf
        late = [view for view in views if self.waited_s(view) > expires_s]
        for view in late:
            self._keep_dead_letter(
                view, _EXPIRED, f"not delivered within {self.settings.expires}: {self._attempts.why}".rstrip(": ")
            )
        return [view for view in views if view not in late]

    # ---- delivering

    def _deliver_merged(self, view: EventView) -> None:
        """Deliver one event as merging decides; remember it once it is delivered or left out, and not before."""
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
        """Send these, and those that the other side refuses to the dead letters. Raises Unavailable."""
        while views:
            if not self._attempts.may_try(time.monotonic()):
                raise self._still_away()
            self._attempt(views)
            views = [view for view in views if view.event.id not in self._done]

    def _attempt(self, views: Sequence[EventView]) -> None:
        """Send once. Afterwards at least one of them is done."""
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
        """Once until something is delivered."""
        if not self._is_trace_logged:
            calls = "".join(traceback.format_tb(error.__traceback__, limit=-_MOST_CALLS))
            self.context.log.error("answer_not_understood", error=type(error).__name__, exception=calls)
            self._is_trace_logged = True

    def _bury_refused(self, views: Sequence[EventView], error: Refused) -> None:
        """Raises RuntimeError if they are none of these: a sink that names others would try for ever."""
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
        """An event that will not be delivered: a dead letter, which `camgraph outbox` shows and can requeue."""
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
        """A process that begins anew goes on with it; if the disk is full, it knows of the last happenings less."""
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
    """How long events have waited for their delivery, whatever becomes of the clock of this machine meanwhile. Pure.

    The clock tells the age of an event once, when it comes here first. From then on its age grows with `steady_ns`. So
    a clock that is set while a receiver is away makes no event old. `wall_ns` is UTC since 1970; `steady_ns` is of a
    clock that nobody sets, which goes on while the machine sleeps (CLOCK_BOOTTIME).
    """

    def __init__(self) -> None:
        self._since: OrderedDict[str, int] = OrderedDict()
        """Event id -> when it was committed, as `steady_ns` would have told."""

    def of(self, event: Event, wall_ns: int, steady_ns: int) -> float:
        """In seconds since the outbox committed it; since it came here first if that is not known."""
        since_ns = self._since.get(event.id)
        if since_ns is None:
            age_ns = max(0, wall_ns - event.committed_ns) if event.committed_ns else 0
            since_ns = self._since[event.id] = steady_ns - age_ns
            if len(self._since) > _KNOWN:
                self._since.popitem(last=False)
        return (steady_ns - since_ns) / 1e9
