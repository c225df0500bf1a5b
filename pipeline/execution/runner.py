"""Calls one stage: in pieces that it can take, and so that an error in it costs no more than it must.

items --one piece at a time--> [tick, if its time has come] --> process --> outputs of each item

raises                          fate of the items
BadItem                         processed again one by one; the bad one is dropped, counted, and logged unless the
                                stage has done that (`logged`)
Unavailable, EnvironmentProblem the same call again, until the outside responds (`pipeline.execution.retry`)
UserError                       ends the run
NeedsNewProcess                 ends this process, and the next one gets the same items
OSError, MemoryError            of a stage that takes events: as Unavailable. The machine refuses something, and a
                                committed event waits for it; frames are too many to wait
anything else                   a bug of the stage: as BadItem, with its traceback in the log

If outputs of several items have stamps that none of them has, the stage gets one item at a time from then on.

An event that is dropped stays as a dead letter (`pipeline.dead_letters`): it was committed, and nobody else has it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, Protocol

from camgraph.pipeline.errors import BadItem, NeedsNewProcess, Unavailable, UserError
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.retry import Closing, GivenUp
from camgraph.pipeline.items import MOST_PARTS, Item
from camgraph.pipeline.messages import End, Event, Message
from camgraph.pipeline.monitoring.metrics import StageTimes
from camgraph.pipeline.monitoring.tracer import Tracer
from camgraph.pipeline.plan import EVERY_CAMERA, StagePlan
from camgraph.pipeline.stage import Stage
from camgraph.pipeline.system.scarcity import in_words

P = ParamSpec("P")

BUGS = (Exception, KeyboardInterrupt, SystemExit)
"""Exceptions that a stage may raise by mistake, even those that would end a process elsewhere."""


def ends_the_run(error: BaseException) -> bool:
    """True for errors that no item is to blame for: the user's mistake, the end of the process or of its device, a
    Ctrl-C.
    """
    if isinstance(error, KeyboardInterrupt):
        return isinstance(error, GivenUp) or signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return isinstance(error, UserError | NeedsNewProcess | Closing)


def _is_logged(error: BaseException) -> bool:
    return isinstance(error, BadItem) and error.logged


class _OtherStamp(Exception):
    """An output of several items has a stamp that none of them has, so it is not known which item it was made of."""


class Runner(Protocol):
    """One stage, or the outbox, as `pipeline.execution.stage_chain` calls it."""

    plan: StagePlan
    times: StageTimes
    hands_out: bool
    """True if its outputs go their own ways, and none of them along with the items that it took."""

    @property
    def stage(self) -> Stage[Any]: ...

    def run(self, items: Sequence[Item]) -> list[list[Message]]:
        """The outputs for each item; a tombstone makes nothing. Raises errors that must end the run, or Closing."""

    def end(self, camera: str, end: End) -> list[Message]:
        """The outputs at a camera's end. Raises as `run`."""


class StageRunner:
    """The runner of a stage. `run` may be called from several threads if the stage allows it."""

    hands_out = False

    def __init__(
        self, plan: StagePlan, stage: Stage[Any], parts: ProcessParts, *, tracer: Tracer | None = None
    ) -> None:
        self.plan = plan
        self.stage = stage
        self.times = StageTimes()
        self._counters = parts.counters
        self._retry = parts.retry
        self._log = parts.log
        self._tracer = tracer
        self._takes_batches = True
        self._bugs = 0
        """Items that failed alone."""
        self._said_alone = False

    def run(self, items: Sequence[Item]) -> list[list[Message]]:
        """See `Runner`."""
        if len(items) == 1 and not items[0].is_mark:
            [item] = items
            ticked, outputs = self._tick(item), self._run_one(item)
            return [self._bounded(item.camera, [*ticked, *outputs] if ticked else outputs)]
        content = [item for item in items if not item.is_mark]
        rows: list[list[Message]] = []
        while len(rows) < len(content):
            ticked = self._tick(content[len(rows)])
            made = self._run_piece(self._piece(content[len(rows) :]))
            made[0][:0] = ticked
            rows += [self._bounded(item.camera, row) for item, row in zip(content[len(rows) :], made, strict=False)]
        if len(content) == len(items):
            return rows
        left = iter(rows)
        return [[] if item.is_mark else next(left) for item in items]

    def end(self, camera: str, end: End) -> list[Message]:
        """See `Runner`."""
        counted = "" if camera == EVERY_CAMERA else camera
        made = self._guarded(counted, None, lambda: self._declared(self.stage.finish(camera, end)))
        return self._bounded(counted, self._traced(made))

    def _bounded(self, camera: str, made: list[Message]) -> list[Message]:
        """As many messages as there are keys for those made of one item."""
        if len(made) > MOST_PARTS:
            self._counters.add("dropped.too_many", camera, len(made) - MOST_PARTS)
            self._log.error("too_many_messages", stage=self.plan.name, camera=camera, made=len(made), most=MOST_PARTS)
            del made[MOST_PARTS:]
        return made

    def _piece(self, items: Sequence[Item]) -> Sequence[Item]:
        """As many of the first items as one call can take: up to the next that is due for a tick."""
        if len(items) == 1 or self.stage.stateful or not self._takes_batches:
            return items[:1]
        due = self.stage.due_ns
        if due is not None:
            late = (n for n, item in enumerate(items) if n and item.stamp.time_ns >= due)
            items = items[: next(late, len(items))]
        # Outputs are told apart by their stamps: two items of one frame cannot share a call that makes any.
        if not self.stage.outputs or len({item.stamp[:3] for item in items}) == len(items):
            return items
        return items[:1]

    def _tick(self, item: Item) -> list[Message]:
        due = self.stage.due_ns
        if due is None or item.stamp.time_ns < due:
            return []
        tick = partial(self.stage.tick, item.camera, item.stamp.time_ns)
        made = self._guarded(item.camera, None, lambda: self._declared(tick()))
        return self._traced(made)

    def _traced(self, made: list[Message]) -> list[Message]:
        if self._tracer is not None:
            self._tracer.made(self.plan.name, made)
        return made

    def _run_piece(self, items: Sequence[Item]) -> list[list[Message]]:
        """With several items an error is pinned down by handing them in one by one."""
        if len(items) == 1:
            return [self._run_one(items[0])]
        try:
            return self._retry.until_taken(self.plan.name, self._call_piece, items)
        except _OtherStamp as other:
            self._stop_batches(str(other))
            return [self._run_one(item) for item in items]
        except BUGS as error:
            if ends_the_run(error):
                raise
            if not _is_logged(error):
                self._log.info("batch_split", stage=self.plan.name, items=len(items), error=str(error))
            before = self._bugs
            made = [self._run_one(item) for item in items]
            if self._bugs == before and not isinstance(error, BadItem):
                self._say_alone(error)
            return made

    def _stop_batches(self, why: str) -> None:
        """Each batch would be processed twice: together in vain, and then one item after the other."""
        if self._takes_batches:
            self._takes_batches = False
            means = (
                "the stage gets one item at a time from now on: give each output the stamp of the item from which the "
                "output was made"
            )
            self._log.warning("batches_given_up", stage=self.plan.name, why=why, means=means)
            self._counters.stage_shows(self.plan.name, {"batches": f"given up: {why}"})

    def _say_alone(self, error: BaseException) -> None:
        """Once: the stage fails with several items and with none of them alone, which costs a second call each time."""
        if not self._said_alone:
            self._said_alone = True
            means = "each item alone was processed; the stage cannot take them together"
            self._log.warning("stage_failed_with_batch", stage=self.plan.name, means=means, exc_info=error)

    def _run_one(self, item: Item) -> list[Message]:
        # The camera of the stamp: to a sink, the events of all cameras come under one name.
        return self._guarded(item.stamp.camera, item.payload, self._call, [item])

    def _guarded(
        self,
        camera: str,
        payload: Message | Mapping[str, Message] | None,
        call: Callable[P, list[Message]],
        *args: P.args,
        **named: P.kwargs,
    ) -> list[Message]:
        """The outputs of a call; after an error none, which is counted and logged: a bug must not cost other items."""
        try:
            return self._retry.until_taken(self.plan.name, call, *args, **named)
        except BadItem as bad:
            self._counters.add(f"dropped.{bad.reason}", camera)
            if not bad.logged:
                self._log.warning("item_dropped", stage=self.plan.name, camera=camera, error=str(bad))
            self._keep_dead_letter(payload, str(bad) or bad.reason)
        except BUGS as error:
            if ends_the_run(error):
                raise
            self._bugs += 1
            self._counters.add("dropped.error", camera)
            self._counters.add(f"failed.{self.plan.name}", camera)
            self._log.exception("stage_failed", stage=self.plan.name, camera=camera)
            self._keep_dead_letter(payload, f"a bug of the sink: {type(error).__name__}: {error}")
        return []

    def _keep_dead_letter(self, payload: object, why: str) -> None:
        """Keep a dropped event as a dead letter; waits while the disk does not take it. Raises Closing."""
        if isinstance(payload, Event):
            letters = self.stage.context.dead_letters
            self._retry.until_taken(self.plan.name, lambda: letters.add(payload, why))

    def _declared(self, outputs: Iterable[Message]) -> list[Message]:
        """The outputs; a type that no edge can be there for is a bug of the stage, and nothing to lose silently."""
        made, declared = list(outputs), self.stage.outputs
        for output in made:
            if type(output) not in declared:
                known = ", ".join(kind.__name__ for kind in self.stage.outputs) or "none"
                raise TypeError(f"made {type(output).__name__}, which is not among its declared outputs ({known})")
        return made

    def _call_piece(self, items: Sequence[Item]) -> list[list[Message]]:
        """The outputs for each of several items."""
        rows: list[list[Message]] = [[] for _ in items]
        places = {item.stamp[:3]: row for item, row in zip(items, rows, strict=True)}
        for output in self._call(items):
            row = places.get(output.stamp[:3])
            if row is None:
                camera, epoch, seq = output.stamp[:3]
                place = f"camera {camera}, epoch {epoch}, seq {seq}"
                got = f"got {type(output).__name__} with the stamp of {place}"
                raise _OtherStamp(f"expected the stamp of an item of the batch, {got}")
            row.append(output)
        return rows

    def _call(self, items: Sequence[Item]) -> list[Message]:
        """All outputs of one call of the stage."""
        started = time.perf_counter_ns()
        try:
            outputs = self._declared(self.stage.process([item.payload for item in items]))
        except (OSError, MemoryError) as error:
            if not any(isinstance(item.payload, Event) for item in items):
                raise
            refused = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
            raise Unavailable(f"cannot deliver events: {in_words(error) or refused}; they wait") from error
        took_ns = time.perf_counter_ns() - started
        self.times.add(took_ns, len(items))
        if self._tracer is not None:
            self._tracer.called(self.plan.name, items, outputs, took_ns)
        return outputs
