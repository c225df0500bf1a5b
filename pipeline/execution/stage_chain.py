"""The stages of one process: the first takes items, and its outputs go through the others by direct calls.

    items --run_head--> outputs --spread--> Made(edges, item, message), in order

Knows nothing of sockets or shared memory. With `processes: one` it is the whole graph, joins and outbox included.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.execution.join import Join, merged_key
from camgraph.pipeline.execution.runner import BUGS, Runner, ends_the_run
from camgraph.pipeline.items import END_SEQ, MOST_PARTS, Item, Key
from camgraph.pipeline.messages import End, Message, Stamp, Tombstone
from camgraph.pipeline.monitoring.histogram import Histogram
from camgraph.pipeline.plan import EdgePlan, ProcessPlan
from camgraph.pipeline.stage import CameraState, Logger


@dataclass(slots=True, eq=False)
class Made:
    """One message for the edges that leave the process, and the item that it was made of."""

    edges: Sequence[EdgePlan]
    item: Item
    message: Message
    key: Key


@dataclass(slots=True)
class _Flow:
    """Messages on their way through the stages: (item, root) by stage, and those that leave."""

    todo: dict[str, list[tuple[Item, Item]]] = field(default_factory=dict)
    made: list[Made] = field(default_factory=list)


class _Wanted(NamedTuple):
    """Who wants a message: edges that leave the process, and those that stay in it."""

    outer: Sequence[EdgePlan]
    inner: Sequence[EdgePlan]

    @classmethod
    def of(cls, edges: Iterable[EdgePlan]) -> _Wanted:
        every = list(edges)
        return cls([edge for edge in every if not edge.inner], [edge for edge in every if edge.inner])


class _Routes(NamedTuple):
    """The routes of one stage's messages: which edges want which type, and which must be told of frames without
    outputs.
    """

    by_type: Mapping[str, _Wanted]
    tombstones: Sequence[EdgePlan]

    @classmethod
    def of(cls, edges: Sequence[EdgePlan]) -> _Routes:
        types = {edge.type for edge in edges}
        by_type = {kind: _Wanted.of(edge for edge in edges if edge.type == kind) for kind in types}
        return cls(by_type, [edge for edge in edges if edge.tombstones])


class StageChain:
    """The stages of one process and the edges between them. Call it from one thread, but for `run_head`."""

    def __init__(self, plan: ProcessPlan, runners: Mapping[str, Runner], log: Logger) -> None:
        self.plan = plan
        self.runners = runners
        self.order = [stage.name for stage in plan.stages if stage.name in runners]
        self._log = log
        self._out: dict[str, list[EdgePlan]] = defaultdict(list)
        self._in: dict[str, list[EdgePlan]] = defaultdict(list)
        handed_out = {name for name, runner in runners.items() if runner.hands_out}
        for edge in plan.edges:
            self._in[edge.reader].append(edge)
            if edge.sender not in handed_out:
                self._out[edge.sender].append(edge)
        self._routes = {name: _Routes.of(edges) for name, edges in self._out.items()}
        self._behind = {name: self.order[n + 1 :] for n, name in enumerate(self.order)}
        self._inner_in = Counter(edge.reader for edge in plan.edges if edge.inner)
        self._joins: dict[tuple[str, str], Join[Message]] = {}
        self._ends: Counter[tuple[str, str]] = Counter()
        self._opened: list[str] = []
        self._ends_frames = plan.ends_frames
        self._ages_ms: dict[str, float] = {}
        self._ages: defaultdict[str, Histogram] = defaultdict(Histogram)

    def goes_on_inside(self, stage: str) -> bool:
        """Whether outputs of a stage reach other stages of this process."""
        return any(edge.inner for edge in self._out.get(stage, ()))

    @property
    def head(self) -> Runner:
        """The stage that takes messages of other processes."""
        return self.runners[self.order[0]]

    def revise(self, plan: ProcessPlan) -> None:
        """The same stages, for other cameras; of those that are gone everything is done, and forgotten."""
        self.plan = plan
        for place in [place for place in self._joins if place[1] not in plan.cameras]:
            del self._joins[place]
        for place in [place for place in self._ends if place[1] not in plan.cameras]:
            del self._ends[place]
        for runner in self.runners.values():
            runner.stage.context.cameras = plan.seen_cameras
            runner.stage.cameras_changed()

    def change_settings(self, plan: ProcessPlan) -> None:
        """Give the stages the settings that they have in this plan; cameras and edges stay as they are.

        Raises whatever a stage raises that does not take them.
        """
        self.plan = replace(self.plan, stages=plan.stages)
        for stage in plan.stages:
            runner = self.runners.get(stage.name)
            if runner and runner.plan.settings != stage.settings:
                runner.stage.change_settings(runner.stage.settings_type.model_validate(dict(stage.settings)))
                runner.plan = stage

    def tell_cameras_now(self, states: Mapping[str, CameraState]) -> None:
        """Tell the stages that follow them."""
        for runner in self.runners.values():
            if runner.stage.follows_cameras:
                runner.stage.context.cameras_now = dict(states)
                runner.stage.cameras_changed()

    def turn_switches(self, changed: Mapping[str, bool]) -> None:
        """Tell the stages the switches that somebody has set."""
        for runner in self.runners.values():
            runner.stage.context.switches = dict(changed)

    def reset_counters(self, resets: Mapping[str, Mapping[str, int]]) -> None:
        """Tell the stages which counters somebody has set to zero."""
        for runner in self.runners.values():
            runner.stage.context.resets = dict(resets)

    def open(self) -> None:
        """Open all stages; `close` closes the open ones, even if one of them fails here."""
        for name in self.order:
            self._opened.append(name)
            try:
                self.runners[name].stage.open()
            except BUGS as error:
                if ends_the_run(error) or isinstance(error, CamgraphError):
                    raise
                self._log.exception("stage_not_opened", stage=name)
                raise _failure(name, error, "opened") from None

    def close(self) -> list[CamgraphError]:
        """Close all stages, the last first; returns the errors of those that failed."""
        failures = []
        while self._opened:
            name = self._opened.pop()
            try:
                self.runners[name].stage.close()
            except BUGS as error:
                self._log.exception("stage_not_closed", stage=name)
                failures.append(_failure(name, error, "closed"))
        return failures

    # ---- content

    def run_head(self, items: Sequence[Item]) -> list[list[Message]]:
        """The outputs of the first stage for the items."""
        return self.head.run(items)

    def spread(self, stage: str, items: Sequence[Item], rows: Sequence[Sequence[Message]]) -> list[Made]:
        """Take the outputs of `stage` for each item through the rest; returns the messages that leave the process, in
        order.
        """
        flow = _Flow()
        for item, outputs in zip(items, rows, strict=True):
            self._give(stage, item, item, outputs, flow)
        if flow.todo:
            self._run_down(stage, flow)
        return flow.made

    def pass_on(self, stage: str, tombstone: Item) -> list[Made]:
        """A frame that made nothing before this stage makes nothing after it."""
        return self.spread(stage, [tombstone], self.runners[stage].run([tombstone]))

    def _run_down(self, after: str, flow: _Flow) -> None:
        """Run the stages behind `after` in topological order."""
        for name in self._behind.get(after, self.order) if flow.todo else ():
            pairs = flow.todo.pop(name, None)
            if pairs:
                self._run_inner(name, pairs, flow)

    def _run_inner(self, name: str, pairs: list[tuple[Item, Item]], flow: _Flow) -> None:
        runner = self.runners[name]
        if self._inner_in[name] > 1:
            pairs.sort(key=lambda pair: pair[0].key)
        for start in range(0, len(pairs), runner.plan.batch_max):
            chunk = pairs[start : start + runner.plan.batch_max]
            for (item, root), outputs in zip(chunk, runner.run([item for item, _ in chunk]), strict=True):
                self._give(name, item, root, outputs, flow)

    def _give(self, stage: str, item: Item, root: Item, outputs: Sequence[Message], flow: _Flow) -> None:
        """Hand the outputs of `stage` for an item to the edges that want them; a tombstone if there are none."""
        ways = self._routes.get(stage)
        if ways is None:
            return
        for part, message in enumerate(outputs):
            wanted = ways.by_type.get(message.TYPE)
            if wanted:
                key = item.key.made(part)
                if wanted.outer:
                    flow.made.append(Made(wanted.outer, root, message, key))
                if wanted.inner:
                    self._pass_in(wanted.inner, Item(item.camera, key, message, stage), root, flow)
        if ways.tombstones and not isinstance(item.payload, End):
            spoken = {message.TYPE for message in outputs}
            silent = [edge for edge in ways.tombstones if edge.type not in spoken]
            if silent:
                reason = item.payload.reason if isinstance(item.payload, Tombstone) else ""
                wanted, stone = _Wanted.of(silent), Tombstone(item.stamp, reason)
                key = item.key.made(0)
                if wanted.outer:
                    flow.made.append(Made(wanted.outer, root, stone, key))
                self._pass_in(wanted.inner, Item(item.camera, key, stone, stage), root, flow)

    def _pass_in(self, edges: Iterable[EdgePlan], item: Item, root: Item, flow: _Flow) -> None:
        """Put an item before the stages of this process that these edges lead to."""
        for edge in edges:
            todo = flow.todo.setdefault(edge.reader, [])
            if edge.port:
                todo += [(joined, root) for joined in self._join(edge, item)]
            else:
                todo.append((self._merged(edge, item), root))

    def _merged(self, edge: EdgePlan, item: Item) -> Item:
        partitions = self._in[edge.reader]
        if len(partitions) == 1:
            return item
        return Item(item.camera, merged_key(item.key, edge, partitions), item.payload, item.sender, item.received)

    def _join(self, edge: EdgePlan, item: Item) -> list[Item]:
        ports = [other.port for other in self._in[edge.reader]]
        join = self._joins.setdefault(
            (edge.reader, item.camera),
            Join(ports, lambda m: isinstance(m, End), lambda m: isinstance(m, Tombstone)),
        )
        assert isinstance(item.payload, Message)
        join.push(edge.port, item.key, item.payload)
        return [
            Item(item.camera, one.key, one.row if one.kind == "joined" else one.tombstone(one.first.stamp))
            for one in join.matched()
            if one.kind != "end"
        ]

    def watermarks_behind(self, key: Key) -> dict[str, Key]:
        """By leaving edge: its low watermark, if that of the first stage is `key`: all outputs of the messages up to
        `key` have keys up to it.

        Behind a merge or a join in here it is the lowest of its inputs.
        """
        last: dict[str, Key] = {self.order[0]: key}
        for name in self.order[1:]:
            edges = self._in[name]
            if edges and all(edge.inner and edge.sender in last for edge in edges):
                last[name] = min(merged_key(last[edge.sender].made(MOST_PARTS - 1), edge, edges) for edge in edges)
        outer = [edge for name in last for edge in self._out[name] if not edge.inner]
        return {edge.name: last[edge.sender].made(MOST_PARTS - 1) for edge in outer}

    # ---- ages

    def frame_done(self, stamp: Stamp) -> None:
        """All that was made of this frame in here is done."""
        if self._ends_frames and stamp.captured_ns:
            age_ns = max(0, time.monotonic_ns() - stamp.captured_ns)
            self._ages_ms[stamp.camera] = age_ns / 1e6
            self._ages[stamp.camera].add(age_ns)

    def ages_ms(self) -> dict[str, float]:
        """Camera -> how old the newest frame was when it was done, of those that ended here since the last call."""
        ages_ms, self._ages_ms = self._ages_ms, {}
        return ages_ms

    def take_ages(self) -> Mapping[str, Histogram]:
        """Camera -> how old its frames were when they were done, of all that ended here since the last call."""
        ages, self._ages = self._ages, defaultdict(Histogram)
        return ages

    def take_calls(self) -> Mapping[str, Histogram]:
        """Stage -> the durations of its calls since the last time."""
        return {name: runner.times.take_durations() for name, runner in self.runners.items()}

    # ---- ends

    def end(self, stage: str, item: Item) -> list[Made]:
        """A camera has ended before `stage`: its last words and those of all stages behind it, then the end itself."""
        end = item.payload
        assert isinstance(end, End)
        flow = _Flow()
        self._end_stage(stage, Item(item.camera, Key(item.key.epoch, END_SEQ, 0), end, "", item.received), flow)
        return flow.made

    def _end_stage(self, name: str, item: Item, flow: _Flow) -> None:
        end = item.payload
        assert isinstance(end, End)
        runner = self.runners.get(name)
        outputs = runner.end(item.camera, end) if runner else []
        self._give(name, item, item, outputs, flow)
        self._run_down(name, flow)
        outer = [edge for edge in self._out[name] if not edge.inner]
        if outer:
            flow.made.append(Made(outer, item, end, Key(item.key.epoch, END_SEQ + 1, 0)))
        for edge in self._out[name]:
            if edge.inner:
                self._end_inner(edge, item, flow)

    def _end_inner(self, edge: EdgePlan, item: Item, flow: _Flow) -> None:
        self._ends[edge.reader, item.camera] += 1
        if self._ends[edge.reader, item.camera] == self._inner_in[edge.reader]:
            self._end_stage(edge.reader, item, flow)


def _failure(stage: str, error: BaseException, done: str) -> CamgraphError:
    """The message for the user if a stage failed to open or close."""
    if not isinstance(error, CamgraphError):
        text = f"stage {stage}: {type(error).__name__} while it was {done}; the log has the details"
        return CamgraphError(text, error_id="bug")
    failure = CamgraphError(f"stage {stage}, while it was {done}: {error}", error_id=error.error_id)
    failure.exit_status = error.exit_status
    return failure
