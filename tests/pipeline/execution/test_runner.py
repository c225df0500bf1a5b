"""One stage and its items: ticks in their place, bugs that cost one item, and waits that cost none."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.parts import process_parts
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from camgraph.pipeline.errors import BadItem, EnvironmentProblem, Unavailable, UserError
from camgraph.pipeline.execution.collector import Collector
from camgraph.pipeline.execution.retry import Closing, GivenUp, Retry
from camgraph.pipeline.execution.runner import StageRunner
from camgraph.pipeline.items import MOST_PARTS, Item, Key
from camgraph.pipeline.messages import End, Event, Message, Tombstone
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EVERY_CAMERA, StagePlan
from camgraph.pipeline.stage import Settings, Stage
from camgraph.pipeline.testing import HandContext, stamp

FRAME_NS = 100_000_000


class Diary(Stage[Settings]):
    """Writes down what it is called for; makes one message of each item."""

    inputs = Message
    outputs = (Message,)

    def __init__(self, folder: Path, trouble: Sequence[BaseException] = (), period_ns: int = 0) -> None:
        super().__init__(Settings(), HandContext(folder, folder))
        self.trouble = iter(trouble)
        self.period_ns = period_ns
        self.due_ns = period_ns or None
        self.calls: list[Any] = []

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        self.calls.append([item.stamp.seq for item in items])
        for error in self.trouble:
            raise error
        return [Message(item.stamp) for item in items]

    def tick(self, camera: str, now_ns: int) -> Iterable[Message]:
        self.calls.append(f"tick {now_ns // FRAME_NS}")
        assert self.due_ns is not None
        self.due_ns = now_ns - now_ns % self.period_ns + self.period_ns
        return [Message(stamp(now_ns // FRAME_NS))]

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        for error in self.trouble:
            raise error
        return [Message(end.stamp)]


def items(*numbers: int) -> list[Item]:
    return [Item("cam", Key(0, n, 0), Message(stamp(n))) for n in numbers]


def runner(stage: Stage[Any], pause: Callable[[float], bool] = lambda _: False) -> tuple[StageRunner, Counters]:
    parts = process_parts(log=stage.context.log, pause=pause)
    return StageRunner(StagePlan("diary", "", {}), stage, parts), parts.counters


def test_a_tick_comes_before_whichever_item_reaches_its_time(tmp_path: Path) -> None:
    stage = Diary(tmp_path, period_ns=3 * FRAME_NS)
    run, _ = runner(stage)
    rows = run.run(items(0, 1, 2, 3, 4, 5, 6, 7))
    assert stage.calls == [[0, 1, 2], "tick 3", [3, 4, 5], "tick 6", [6, 7]]
    assert [[message.stamp.seq for message in row] for row in rows] == [[0], [1], [2], [3, 3], [4], [5], [6, 6], [7]]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True).map(sorted), st.integers(1, 9))
def test_ticks_do_not_depend_on_the_batch(seqs: list[int], every: int) -> None:
    folder = Path()
    together, one_by_one = (Diary(folder, period_ns=every * FRAME_NS) for _ in range(2))
    rows = runner(together)[0].run(items(*seqs))
    single = runner(one_by_one)[0]
    assert [[m.stamp for m in row] for row in rows] == [[m.stamp for m in single.run([i])[0]] for i in items(*seqs)]
    ticks = [call for call in together.calls if isinstance(call, str)]
    assert ticks == [call for call in one_by_one.calls if isinstance(call, str)]


def test_a_tombstone_makes_nothing_and_is_not_handed_in(tmp_path: Path) -> None:
    stage = Diary(tmp_path)
    first, third = items(1, 3)
    stone = Item("cam", Key(0, 2, 0), Tombstone(stamp(2)))
    rows = runner(stage)[0].run([first, stone, third])
    assert [len(row) for row in rows] == [1, 0, 1]
    assert stage.calls == [[1, 3]]


@pytest.mark.parametrize("error", [RuntimeError("oh"), KeyboardInterrupt(), SystemExit(3)])
def test_a_bug_costs_the_item_and_not_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    # As in a process of a run: there nobody presses Ctrl-C.
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    stage = Diary(tmp_path, [error])
    run, counters = runner(stage)
    assert [len(row) for row in run.run(items(1))] == [0]
    assert [len(row) for row in run.run(items(2))] == [1]
    assert counters.get("dropped.error", "cam") == 1


class Undeclared(Diary):
    outputs = (Tombstone,)


def test_output_of_undeclared_type_is_counted_as_error(tmp_path: Path) -> None:
    run, counters = runner(Undeclared(tmp_path))
    assert run.run(items(1, 2)) == [[], []]
    assert run.end("cam", End(stamp(2), "end")) == []
    assert counters.get("dropped.error", "cam") == 3


def test_one_of_a_batch_that_fails_costs_the_others_nothing(tmp_path: Path) -> None:
    stage = Diary(tmp_path, [RuntimeError("together"), BadItem("told")])
    run, counters = runner(stage)
    assert [len(row) for row in run.run(items(1, 2, 3))] == [0, 1, 1]
    assert stage.calls == [[1, 2, 3], [1], [2], [3]]
    assert counters.snapshot() == [("dropped.told", "cam", 1)]


@pytest.mark.parametrize("error", [UserError("the user's"), GivenUp(), Closing()])
def test_what_ends_the_run_is_no_bug(tmp_path: Path, error: BaseException) -> None:
    run, counters = runner(Diary(tmp_path, [error]))
    with pytest.raises(type(error)):
        run.run(items(1, 2))
    assert counters.snapshot() == []


@pytest.mark.parametrize("error", [Unavailable, EnvironmentProblem])
def test_what_the_outside_does_not_take_is_handed_in_again(tmp_path: Path, error: type[Exception]) -> None:
    stage = Diary(tmp_path, [error("away"), error("still away")], period_ns=FRAME_NS)
    seen: list[str] = []
    retry: list[Retry] = []

    def pause(seconds: float) -> bool:
        seen.append(retry[0].waits_for)
        assert retry[0].since > 0
        return False

    run, counters = runner(stage, pause)
    retry.append(run._retry)
    assert [len(row) for row in run.run(items(1))] == [2]
    assert stage.calls == ["tick 1", [1], [1], [1]]
    assert seen == ["diary: away", "diary: still away"]
    assert (run._retry.waits_for, run._retry.since, counters.snapshot()) == ("", 0.0, [])
    assert run.times.snapshot()["items"] == 1


def of_all_cameras(*numbers: int) -> list[Item]:
    """Events of the camera `cam`, as the outbox hands them to a sink."""
    return [Item(EVERY_CAMERA, Key(0, n, 0), Event(stamp(n), f"e{n}", "", "single", b"{}"), "outbox") for n in numbers]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (ConnectionResetError("gone"), "gone"),
        (TimeoutError(), "TimeoutError"),
        (MemoryError(), "free some memory"),
    ],
)
@pytest.mark.parametrize("numbers", [(1,), (1, 2)])
def test_events_wait_for_what_the_machine_refuses_a_sink(
    tmp_path: Path, error: Exception, message: str, numbers: tuple[int, ...]
) -> None:
    stage, seen = Diary(tmp_path, [error, error]), []
    run, counters = runner(stage, lambda _: bool(seen.append(run._retry.waits_for)))
    assert [len(row) for row in run.run(of_all_cameras(*numbers))] == [1] * len(numbers)
    assert stage.calls == [list(numbers)] * 3
    assert counters.snapshot() == []
    assert len(seen) == 2
    assert all(message in why and why.endswith("they wait") for why in seen)


def test_bug_in_sink_drops_event_of_its_camera(tmp_path: Path) -> None:
    run, counters = runner(Diary(tmp_path, [ValueError("oh")]))
    assert run.run(of_all_cameras(1)) == [[]]
    assert counters.snapshot() == [("dropped.error", "cam", 1), ("failed.diary", "cam", 1)]


def test_a_bug_at_the_end_of_all_cameras_is_counted_for_none(tmp_path: Path) -> None:
    run, counters = runner(Diary(tmp_path, [ValueError("oh")]))
    assert run.end(EVERY_CAMERA, End(stamp(1))) == []
    assert counters.snapshot() == [("dropped.error", "", 1), ("failed.diary", "", 1)]


def test_frames_do_not_wait_for_what_the_machine_refuses(tmp_path: Path) -> None:
    run, counters = runner(Diary(tmp_path, [OSError(errno.EMFILE, "Too many open files")]))
    assert run.run(items(1)) == [[]]
    assert counters.get("dropped.error", "cam") == 1


@pytest.mark.parametrize("logged", [False, True])
def test_bad_item_logged_by_stage_is_only_counted(tmp_path: Path, logged: bool) -> None:
    stage = Diary(tmp_path, [BadItem("odd", logged=logged), BadItem("odd", logged=logged)])
    with capture_logs() as logs:
        run, counters = runner(stage)
        assert [len(made) for made in run.run(items(0, 1))] == [0, 1]
    assert counters.get("dropped.odd", "cam") == 1
    assert [line["event"] for line in logs] == ([] if logged else ["batch_split", "item_dropped"])


@pytest.mark.parametrize("after", [BadItem("odd", "no"), RuntimeError("oh")])
def test_what_is_given_up_after_a_wait_is_waited_for_no_longer(tmp_path: Path, after: Exception) -> None:
    run, counters = runner(Diary(tmp_path, [Unavailable("away"), after]))
    assert run.run(items(1)) == [[]]
    assert (run._retry.waits_for, run._retry.since) == ("", 0.0)
    assert sum(n for name, _, n in counters.snapshot() if name.startswith("dropped.")) == 1


class Shifted(Diary):
    """Stamps its outputs as if they were made of other frames."""

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        return [Message(made.stamp._replace(seq=made.stamp.seq + 100)) for made in super().process(items)]


def test_outputs_with_other_stamps_cost_the_batches(tmp_path: Path) -> None:
    stage = Shifted(tmp_path)
    with capture_logs() as logs:
        run, counters = runner(stage)
        rows = [*run.run(items(0, 1, 2)), *run.run(items(3, 4, 5))]
    assert [[made.stamp.seq for made in row] for row in rows] == [[100], [101], [102], [103], [104], [105]]
    assert stage.calls == [[0, 1, 2], [0], [1], [2], [3], [4], [5]], "nothing is processed twice any more"
    assert [(line["event"], line["log_level"], line["stage"]) for line in logs] == [
        ("batches_given_up", "warning", "diary")
    ]
    assert "got Message with the stamp of camera cam, epoch 0, seq 100" in logs[0]["why"]
    assert counters.stage_facts["diary"]["batches"] == f"given up: {logs[0]['why']}"
    assert not [name for name, _, _ in counters.snapshot() if name.startswith("dropped.")]


class Alone(Diary):
    """Cannot take several items at once."""

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        if len(items) > 1:
            raise ValueError("all input arrays must have the same shape")
        return super().process(items)


def test_a_stage_that_fails_with_batches_is_told_once(tmp_path: Path) -> None:
    with capture_logs() as logs:
        run, counters = runner(Alone(tmp_path))
        for seq in (0, 2, 4):
            assert [len(made) for made in run.run(items(seq, seq + 1))] == [1, 1]
    [line] = [line for line in logs if line["log_level"] == "warning"]
    assert (line["event"], str(line["exc_info"])) == (
        "stage_failed_with_batch",
        "all input arrays must have the same shape",
    )
    assert not [name for name, _, _ in counters.snapshot() if name.startswith("dropped.")]


class Crowd(Diary):
    """More than there are keys for."""

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        return [Message(item.stamp) for item in items for _ in range(MOST_PARTS + 3)]

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        return [Message(end.stamp)] * (MOST_PARTS + 1)


def test_more_messages_than_there_are_keys_for_are_counted(tmp_path: Path) -> None:
    run, counters = runner(Crowd(tmp_path))
    assert [len(row) for row in run.run(items(1, 2))] == [MOST_PARTS] * 2
    assert len(run.end("cam", End(stamp(2)))) == MOST_PARTS
    assert counters.get("dropped.too_many", "cam") == 3 + 3 + 1


def test_the_end_of_a_camera_waits_for_the_outside_too(tmp_path: Path) -> None:
    run, _ = runner(Diary(tmp_path, [Unavailable("away")]))
    assert len(run.end("cam", End(stamp(3)))) == 1


def test_a_process_that_closes_does_not_wait(tmp_path: Path) -> None:
    run, counters = runner(Diary(tmp_path, [Unavailable("away")]), lambda _: True)
    with pytest.raises(Closing, match="away"):
        run.run(items(1, 2))
    assert counters.snapshot() == []


def test_slots_of_a_call_that_failed_are_let_go() -> None:
    gone: list[Any] = []
    collector = Collector(gone.append)
    attempts = iter([Unavailable("away"), None])

    def call() -> str:
        assert collector.slots is not None
        collector.slots.append(object())  # type: ignore[arg-type]
        if error := next(attempts):
            raise error
        return "done"

    class Quiet:
        def __getattr__(self, name: str) -> Any:
            return lambda *_, **__: None

    with collector.collecting() as slots:
        assert Retry(lambda _: False, collector, Quiet()).until_taken("stage", call) == "done"
    assert (len(slots), len(gone)) == (1, 1)
    assert slots != gone
