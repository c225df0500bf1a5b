"""The stages of one process: the first takes items, what it makes goes on through the others by direct calls.

    items --run_head--> outputs --spread--> Made(edges, item, message), in order

Knows nothing of sockets or shared memory. With `processes: one` the unit is the whole graph, joins and outbox included.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import BadItem, EnvironmentProblem, Unavailable, UserError
from pipeline.items import END_SEQ, MOST_PARTS, Item, Key
from pipeline.join import Join
from pipeline.messages import End, Event, Message, Tombstone
from pipeline.metrics import Counters, StageTimes
from pipeline.outbox import EVERY_CAMERA, Outbox
from pipeline.plan import EdgePlan, StagePlan, UnitPlan
from pipeline.stage import Logger, Stage

_PASSED_ON = (UserError, EnvironmentProblem, Unavailable)
_PULL_AT_ONCE = 64


@dataclass(slots=True, eq=False)
class Made:
    """One message for the edges that leave the process, and the item that it was made of."""

    edges: Sequence[EdgePlan]
    item: Item
    message: Message
    key: Key


class StageRunner:
    """Calls one stage: sorts its outputs by item, drops what it cannot process, keeps its times."""

    def __init__(self, plan: StagePlan, stage: Stage[Any], counters: Counters, log: Logger) -> None:
        self.plan = plan
        self.stage = stage
        self.times = StageTimes()
        self._counters = counters
        self._log = log

    def run(self, items: Sequence[Item]) -> list[list[Message]]:
        """The outputs for each item. Raises what must end or hold the stage as a whole.

        With several items an error is pinned down by handing them in one by one, unless the stage remembers what it
        saw.
        """
        # Outputs are told apart by their stamps: two items of one frame cannot share a call.
        if len(items) == 1 or self.stage.stateful or len({item.stamp[:3] for item in items}) < len(items):
            return [self._run_one(item) for item in items]
        try:
            return self._call(items)
        except _PASSED_ON:
            raise
        except Exception as error:  # noqa: BLE001 - told apart, counted and logged one by one
            self._log.info("batch_split", stage=self.plan.name, items=len(items), error=str(error))
            return [self._run_one(item) for item in items]

    def _run_one(self, item: Item) -> list[Message]:
        try:
            return self._call([item])[0]
        except _PASSED_ON:
            raise
        except BadItem as bad:
            self._counters.add(f"dropped.{bad.reason}", item.camera)
            self._log.warning("item_dropped", stage=self.plan.name, camera=item.camera, error=str(bad))
        except Exception:  # noqa: BLE001 - a bug of the stage must not cost the other items
            self._counters.add("dropped.error", item.camera)
            self._log.exception("stage_failed", stage=self.plan.name, camera=item.camera)
        return []

    def _call(self, items: Sequence[Item]) -> list[list[Message]]:
        started = time.perf_counter_ns()
        outputs = self._tick(items) + list(self.stage.process([item.payload for item in items]))
        self.times.add(time.perf_counter_ns() - started, len(items))
        if len(items) == 1:
            return [outputs]
        rows: list[list[Message]] = [[] for _ in items]
        places = {item.stamp[:3]: row for item, row in zip(items, rows, strict=True)}
        for output in outputs:
            places[output.stamp[:3]].append(output)
        return rows

    def _tick(self, items: Sequence[Item]) -> list[Message]:
        due = self.stage.due_ns
        if due is None or items[0].stamp.time_ns < due:
            return []
        return list(self.stage.tick(items[0].camera, items[0].stamp.time_ns))

    def finish(self, camera: str, end: End) -> list[Message]:
        """What the stage says at a camera's end."""
        try:
            return list(self.stage.finish(camera, end))
        except _PASSED_ON:
            raise
        except Exception:  # noqa: BLE001 - as in `_run_one`
            self._counters.add("dropped.error", camera)
            self._log.exception("stage_failed", stage=self.plan.name, camera=camera)
            return []


@dataclass(slots=True)
class _Flow:
    """What is on its way through the stages: (item, root) by stage, and what has left."""

    todo: dict[str, list[tuple[Item, Item]]] = field(default_factory=lambda: defaultdict(list))
    made: list[Made] = field(default_factory=list)


class Unit:
    """The stages of one process and the edges between them. Call it from one thread, but for `run_head`."""

    def __init__(self, plan: UnitPlan, runners: Mapping[str, StageRunner], log: Logger) -> None:
        self.plan = plan
        self.runners = runners
        self.order = [stage.name for stage in plan.stages if stage.name in runners]
        self._log = log
        self._out: dict[str, list[EdgePlan]] = defaultdict(list)
        for edge in plan.edges:
            self._out[edge.sender].append(edge)
        self._inner_in = Counter(edge.reader for edge in plan.edges if edge.inner)
        self._joins: dict[tuple[str, str], Join[Message]] = {}
        self._ends: Counter[tuple[str, str]] = Counter()
        self._stack = ExitStack()

    @property
    def head(self) -> StageRunner:
        """The stage that takes what comes from other processes."""
        return self.runners[self.order[0]]

    @property
    def outbox(self) -> Outbox | None:
        """The outbox, if it is in this process."""
        found = [runner.stage for runner in self.runners.values() if isinstance(runner.stage, Outbox)]
        return found[0] if found else None

    def open(self) -> None:
        """Open all stages; what has been opened is closed by `close`, also when one of them fails."""
        for name in self.order:
            stage = self.runners[name].stage
            self._stack.callback(stage.close)
            stage.open()

    def close(self) -> None:
        """Close all stages, the last first."""
        self._stack.close()

    # ---- content

    def run_head(self, items: Sequence[Item]) -> list[list[Message]]:
        """What the first stage makes of the items."""
        if isinstance(self.head.stage, Outbox):
            self.head.stage.accept(items)
            return [[] for _ in items]
        return self.head.run(items)

    def spread(self, stage: str, items: Sequence[Item], rows: Sequence[Sequence[Message]]) -> list[Made]:
        """Take what `stage` made of each item on through the rest; what leaves the process, in order."""
        flow = _Flow()
        if self._is_outbox(stage):
            return []  # what it hands out belongs to no item
        for item, outputs in zip(items, rows, strict=True):
            self._give(stage, (item, item), outputs, flow)
        self._run_down(stage, flow)
        return flow.made

    def pass_on(self, stage: str, tombstone: Item) -> list[Made]:
        """A frame that made nothing before this stage makes nothing after it."""
        runner = self.runners[stage]
        if isinstance(runner.stage, Outbox):
            runner.stage.accept([tombstone])
            return []
        return self.spread(stage, [tombstone], [[]])

    def _is_outbox(self, stage: str) -> bool:
        return stage in self.runners and isinstance(self.runners[stage].stage, Outbox)

    def _run_down(self, after: str, flow: _Flow) -> None:
        """Run the stages behind `after` in topological order."""
        for name in self.order[self.order.index(after) + 1 :] if after in self.order else self.order:
            pairs = flow.todo.pop(name, [])
            if pairs:
                self._run_inner(name, pairs, flow)

    def _run_inner(self, name: str, pairs: list[tuple[Item, Item]], flow: _Flow) -> None:
        runner = self.runners[name]
        if self._inner_in[name] > 1:
            pairs.sort(key=lambda pair: pair[0].key)
        if isinstance(runner.stage, Outbox):
            runner.stage.accept([item for item, _ in pairs])
            self._pump_outbox(runner.stage)
            return
        for start in range(0, len(pairs), runner.plan.batch_max):
            chunk = pairs[start : start + runner.plan.batch_max]
            content = [item for item, _ in chunk if not item.is_mark]
            rows = {id(item): row for item, row in zip(content, runner.run(content) if content else [], strict=True)}
            for pair in chunk:
                self._give(name, pair, rows.get(id(pair[0]), []), flow)

    def _give(self, stage: str, pair: tuple[Item, Item], outputs: Sequence[Message], flow: _Flow) -> None:
        """Hand what `stage` made of an item to the edges that want it; a tombstone where nothing came."""
        item, root = pair
        spoken: set[str] = set()
        if len(outputs) > MOST_PARTS:
            self._log.error("too_many_messages", stage=stage, camera=item.camera, made=len(outputs), most=MOST_PARTS)
        for part, message in enumerate(outputs[:MOST_PARTS]):
            wanted = [edge for edge in self._out[stage] if edge.type == message.TYPE]
            spoken.update(edge.name for edge in wanted)
            made = Item(item.camera, item.key.made(part), message, stage)
            self._route(wanted, made, root, flow)
        silent = [edge for edge in self._out[stage] if edge.tombstones and edge.name not in spoken]
        if silent and not isinstance(item.payload, End):
            reason = item.payload.reason if isinstance(item.payload, Tombstone) else ""
            stone = Item(item.camera, item.key.made(0), Tombstone(item.stamp, reason), stage)
            self._route(silent, stone, root, flow)

    def _route(self, edges: Sequence[EdgePlan], item: Item, root: Item, flow: _Flow) -> None:
        assert isinstance(item.payload, Message)
        outer = [edge for edge in edges if not edge.inner]
        if outer:
            flow.made.append(Made(outer, root, item.payload, item.key))
        for edge in edges:
            if edge.inner and edge.port:
                flow.todo[edge.reader] += [(joined, root) for joined in self._join(edge, item)]
            elif edge.inner:
                flow.todo[edge.reader].append((self._merged(edge, item), root))

    def _merged(self, edge: EdgePlan, item: Item) -> Item:
        """As on a merge between processes: the key says on which of the edges it came."""
        lanes = [other.name for other in self.plan.edges if other.reader == edge.reader]
        if len(lanes) == 1 or edge.type == Event.TYPE:
            return item
        key = item.key.merged(lanes.index(edge.name), len(lanes))
        return Item(item.camera, key, item.payload, item.sender, item.received)

    def _join(self, edge: EdgePlan, item: Item) -> list[Item]:
        ports = [other.port for other in self.plan.edges if other.reader == edge.reader]
        join = self._joins.setdefault(
            (edge.reader, item.camera),
            Join(ports, lambda m: isinstance(m, End), lambda m: isinstance(m, Tombstone)),
        )
        assert isinstance(item.payload, Message)
        join.push(edge.port, item.key, item.payload)
        return [
            Item(item.camera, key, row if kind == "joined" else Tombstone(next(iter(row.values())).stamp))
            for kind, key, row in join.matched()
            if kind != "end"
        ]

    # ---- ends

    def end(self, stage: str, item: Item) -> list[Made]:
        """A camera has ended before `stage`: its last words and those of all stages behind it, then the end itself."""
        end = item.payload
        assert isinstance(end, End)
        flow = _Flow()
        if (outbox := self.outbox) is not None and self._is_outbox(stage):
            outbox.end(item.camera)
            return []
        self._end_stage(stage, Item(item.camera, Key(item.key.epoch, END_SEQ, 0), end, "", item.received), flow)
        return flow.made

    def _end_stage(self, name: str, item: Item, flow: _Flow) -> None:
        end = item.payload
        assert isinstance(end, End)
        runner = self.runners.get(name)
        outputs = runner.finish(item.camera, end) if runner else []
        self._give(name, (item, item), outputs, flow)
        self._run_down(name, flow)
        outer = [edge for edge in self._out[name] if not edge.inner]
        if outer:
            flow.made.append(Made(outer, item, end, Key(item.key.epoch, END_SEQ + 1, 0)))
        for edge in self._out[name]:
            if edge.inner:
                self._end_inner(edge, item, end, flow)

    def _end_inner(self, edge: EdgePlan, item: Item, end: End, flow: _Flow) -> None:
        self._ends[edge.reader, item.camera] += 1
        if self._ends[edge.reader, item.camera] < self._inner_in[edge.reader]:
            return
        runner = self.runners[edge.reader]
        if isinstance(runner.stage, Outbox):
            runner.stage.end(item.camera)
            self._pump_outbox(runner.stage)
            if runner.stage.ended(self.plan.cameras):
                for sink in self._out[edge.reader]:
                    self.runners[sink.reader].finish(EVERY_CAMERA, end)
            return
        self._end_stage(edge.reader, item, flow)

    # ---- the outbox, when it is in this process

    def _pump_outbox(self, outbox: Outbox) -> None:
        for edge in self._out[outbox.context.stage]:
            if edge.inner:
                self._pump_sink(outbox, edge.reader)

    def _pump_sink(self, outbox: Outbox, sink: str) -> None:
        while rows := outbox.pull(sink, _PULL_AT_ONCE):
            items = [Item(EVERY_CAMERA, Key(0, row, 0), event) for row, event in rows]
            try:
                self.runners[sink].run(items)
            except (Unavailable, EnvironmentProblem) as error:
                outbox.take_back(sink)
                self._log.warning("sink_unavailable", stage=sink, error=str(error))
                return
            outbox.acknowledge(sink, [row for row, _ in rows])
