"""The stages of one process: direct calls in the order of the graph; ends and tombstones for everyone who waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.parts import process_parts
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EnvironmentProblem
from camgraph.pipeline.execution.runner import StageRunner
from camgraph.pipeline.execution.stage_chain import Made, StageChain
from camgraph.pipeline.items import END_SEQ, MOST_PARTS, Item, Key
from camgraph.pipeline.messages import End, Message, Tombstone
from camgraph.pipeline.plan import EdgePlan, ProcessPlan, StagePlan
from camgraph.pipeline.stage import Settings, Stage
from camgraph.pipeline.testing import HandContext, stamp

LOG = structlog.get_logger()


class Step(Stage[Settings]):
    """Passes on the frames that are not in `drops`, `copies` times, and says one last word if it is to."""

    inputs = Message
    outputs = (Message,)

    def __init__(self, diary: list[str], name: str, drops: Iterable[int] = (), copies: int = 1, last: int = 0) -> None:
        super().__init__(Settings(), HandContext(Path(), Path()))
        self.diary, self.name, self.drops, self.copies, self.last = diary, name, set(drops), copies, last
        self.failure: BaseException | None = None

    def open(self) -> None:
        self.diary.append(f"{self.name} opens")
        if self.failure:
            raise self.failure

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        self.diary += [f"{self.name} {item.stamp.seq}" for item in items]
        for item in items:
            if item.stamp.seq not in self.drops:
                yield from [Message(item.stamp)] * self.copies

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        self.diary.append(f"{self.name} ends")
        return [Message(end.stamp)] * self.last

    def close(self) -> None:
        self.diary.append(f"{self.name} closes")
        if self.failure:
            raise self.failure


def edge(sender: str, reader: str, port: str = "", *, inner: bool = True, tombstones: bool = False) -> EdgePlan:
    return EdgePlan(sender, reader, port, Message.TYPE, "block", 1, tombstones=tombstones, inner=inner)


def chain_of(steps: Mapping[str, Step], edges: Sequence[EdgePlan], *, batch_max: int = 8) -> StageChain:
    plans = tuple(StagePlan(name, "", {}, batch_max=batch_max) for name in steps)
    plan = ProcessPlan("chain", plans, ("cam",), window=4, edges=tuple(edges), routes={})
    parts = process_parts(log=LOG)
    runners = {one.name: StageRunner(one, steps[one.name], parts) for one in plans}
    return StageChain(plan, runners, LOG)


def items(*numbers: int) -> list[Item]:
    return [Item("cam", Key(0, n, 0), Message(stamp(n))) for n in numbers]


def run(chain: StageChain, given: Sequence[Item]) -> list[Made]:
    return chain.spread(chain.order[0], given, chain.run_head(given))


def left_as(made: Sequence[Made]) -> list[tuple[str, int, list[str]]]:
    """(kind, frame, edges) of each message that leaves."""
    return [(one.message.TYPE or "message", one.message.stamp.seq, [out.name for out in one.edges]) for one in made]


def end(seq: int = 9) -> Item:
    return Item("cam", Key(0, END_SEQ, 0), End(stamp(seq)))


def test_only_outputs_of_the_last_stage_leave() -> None:
    diary: list[str] = []
    steps = {"a": Step(diary, "a"), "b": Step(diary, "b", drops=[2]), "c": Step(diary, "c", copies=2)}
    chain = chain_of(steps, [edge("a", "b"), edge("b", "c"), edge("c", "out", inner=False)])
    made = run(chain, items(1, 2))
    assert diary == ["a 1", "a 2", "b 1", "b 2", "c 1"]
    assert left_as(made) == [("message", 1, ["c>out"])] * 2
    assert [one.item.stamp.seq for one in made] == [1, 1], "the item of the first stage is what is to be acknowledged"
    assert len({one.key for one in made}) == 2


@given(st.lists(st.integers(0, 50), min_size=1, max_size=10, unique=True).map(sorted), st.integers(1, 10))
def test_inner_batches_change_nothing(numbers: list[int], batch_max: int) -> None:
    def made(most: int) -> list[tuple[Key, int]]:
        steps = {"a": Step([], "a", drops=[7], copies=2), "b": Step([], "b", drops=[3]), "c": Step([], "c", copies=3)}
        chain = chain_of(steps, [edge("a", "b"), edge("b", "c"), edge("c", "out", inner=False)], batch_max=most)
        return [(one.key, one.message.stamp.seq) for one in run(chain, items(*numbers))]

    found = made(batch_max)
    assert found == made(1)
    assert [key for key, _ in found] == sorted(key for key, _ in found)


def test_frame_without_output_leaves_a_tombstone() -> None:
    steps = {"a": Step([], "a", drops=[1]), "b": Step([], "b")}
    outer = [edge("a", "join", "left", inner=False, tombstones=True), edge("b", "log", inner=False)]
    chain = chain_of(steps, [edge("a", "b", tombstones=True), *outer])
    assert left_as(run(chain, items(1))) == [("tombstone", 1, ["a>join:left"])]
    stone = Item("cam", Key(0, 2, 0), Tombstone(stamp(2), "queue_full"))
    [passed_on] = chain.pass_on("a", stone)
    assert isinstance(passed_on.message, Tombstone)
    assert passed_on.message.reason == "queue_full", "the reason of the first drop is kept"


def test_a_diamond_is_joined_within_the_process() -> None:
    rows: list[Any] = []

    class Both(Step):
        inputs = {"left": Message, "right": Message}  # noqa: RUF012

        def process(self, items: Sequence[Any]) -> Iterable[Message]:
            rows.extend(sorted(item) for item in items)
            return [Message(item["left"].stamp) for item in items]

    steps = {"a": Step([], "a"), "b": Step([], "b", drops=[2]), "both": Both([], "both")}
    inner = [edge("a", "b"), edge("a", "both", "left", tombstones=True), edge("b", "both", "right", tombstones=True)]
    chain = chain_of(steps, [*inner, edge("both", "out", inner=False)])
    assert left_as(run(chain, items(1, 2, 3))) == [("message", 1, ["both>out"]), ("message", 3, ["both>out"])]
    assert rows == [["left", "right"]] * 2


def test_an_end_follows_the_last_words_of_all_stages() -> None:
    diary: list[str] = []
    steps = {"a": Step(diary, "a", last=1), "b": Step(diary, "b", last=1)}
    chain = chain_of(steps, [edge("a", "b"), edge("b", "out", inner=False)])
    assert left_as(chain.end("a", end())) == [("message", 9, ["b>out"])] * 2 + [("end", 9, ["b>out"])]
    assert diary == ["a ends", "b 9", "b ends"]


def test_a_merge_ends_after_both_of_its_senders() -> None:
    diary: list[str] = []
    steps = {"a": Step(diary, "a"), "b": Step(diary, "b"), "c": Step(diary, "c"), "merged": Step(diary, "merged")}
    inner = [edge("a", "b"), edge("a", "c"), edge("b", "merged"), edge("c", "merged")]
    chain = chain_of(steps, [*inner, edge("merged", "out", inner=False)])
    made = run(chain, items(1))
    assert left_as(made) == [("message", 1, ["merged>out"])] * 2
    assert made[0].key < made[1].key
    diary.clear()
    assert [one.message.TYPE for one in chain.end("a", end())] == ["end"]
    assert diary == ["a ends", "b ends", "c ends", "merged ends"]


def test_a_camera_that_comes_again_ends_again() -> None:
    """The ends of the camera that was removed are forgotten with it: the next of its name would never end."""
    diary: list[str] = []
    steps = {name: Step(diary, name) for name in ("a", "b", "c", "merged")}
    inner = [edge("a", "b"), edge("a", "c"), edge("b", "merged"), edge("c", "merged")]
    chain = chain_of(steps, [*inner, edge("merged", "out", inner=False)])
    plan = chain.plan
    for _ in range(2):
        assert [one.message.TYPE for one in chain.end("a", end())] == ["end"]
        chain.revise(replace(plan, cameras=()))
        chain.revise(plan)


def test_watermark_follows_all_of_a_finished_frame() -> None:
    chain = chain_of(
        {"a": Step([], "a"), "b": Step([], "b", copies=3)}, [edge("a", "b"), edge("b", "out", inner=False)]
    )
    keys = [one.key for one in run(chain, items(4))]
    passed = chain.watermarks_behind(Key(0, 4, 0))["b>out"]
    assert max(keys) <= passed == Key(0, 4, 0).made(MOST_PARTS - 1).made(MOST_PARTS - 1)
    assert passed < run(chain, items(5))[0].key


class Bounded(Settings):
    """A setting that may change while the stage runs."""

    least: int = 0


def test_settings_that_are_changed_back_are_taken_over_again() -> None:
    diary: list[str] = []
    step = Step(diary, "a")
    step.settings_type = Bounded
    step.change_settings = lambda settings: diary.append(f"least {settings.least}")  # type: ignore[method-assign]
    chain = chain_of({"a": step}, [edge("a", "out", inner=False)])
    [stage] = chain.plan.stages
    for least in (3, 3, 0):
        chain.change_settings(replace(chain.plan, stages=(replace(stage, settings={"least": least}),)))
    assert diary == ["least 3", "least 0"]


def test_closes_in_reverse_order_despite_a_failure() -> None:
    diary: list[str] = []
    steps = {name: Step(diary, name) for name in "abc"}
    steps["b"].failure = RuntimeError("oh")
    chain = chain_of(steps, [edge("a", "b"), edge("b", "c")])
    with pytest.raises(Exception, match="stage b: RuntimeError while it was opened; the log has the details"):
        chain.open()
    failures = chain.close()
    assert diary == ["a opens", "b opens", "b closes", "a closes"]
    assert [str(failure) for failure in failures] == [
        "stage b: RuntimeError while it was closed; the log has the details"
    ]
    assert chain.close() == [], "once"


def test_the_fault_of_a_stage_keeps_its_exit_status() -> None:
    steps = {"a": Step([], "a")}
    steps["a"].failure = EnvironmentProblem("the disk is full")
    chain = chain_of(steps, [])
    with pytest.raises(EnvironmentProblem, match="the disk is full"):
        chain.open()
    [failure] = chain.close()
    assert (str(failure), failure.exit_status) == ("stage a, while it was closed: the disk is full", EXIT_ENVIRONMENT)
