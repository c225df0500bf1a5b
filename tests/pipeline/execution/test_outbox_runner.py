"""In one process, too, the sinks hear of the end when it is noted what they have."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

from camgraph_test_stages.parts import process_parts

from camgraph.pipeline.execution.outbox_runner import OutboxRunner
from camgraph.pipeline.execution.runner import StageRunner
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import MOST_REPEATED, End, Event, Message
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.plan import StagePlan
from camgraph.pipeline.stage import Context, Settings, Stage
from camgraph.pipeline.testing import HandContext, stamp


class Log(Stage[Settings]):
    """Takes events, and the end."""

    settings_type = Settings
    inputs = Event
    outputs: ClassVar = ()
    ended = False

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.got: list[str] = []

    def process(self, items: list[Event]) -> list[Message]:  # type: ignore[override]
        self.got += [event.id for event in items]
        return []

    def finish(self, camera: str, end: End) -> list[Message]:
        self.ended = True
        return []


def test_the_end_waits_until_it_is_noted_what_the_sinks_have(tmp_path: Path) -> None:
    context = HandContext(tmp_path, tmp_path)
    values = {"path": str(tmp_path / "outbox.sqlite"), "sinks": {"log": []}}
    outbox = Outbox(Outbox.settings_type.model_validate(values), context)
    outbox.open()
    sink = Log(Settings(), context)
    waited: list[bool] = []

    def pause(seconds: float) -> bool:
        waited.append(sink.ended)
        outbox.db.execute("PRAGMA query_only = 0")
        return False

    parts = process_parts(pause=pause)
    sinks = {"log": StageRunner(StagePlan("log", "log", {}), sink, parts)}
    runner = OutboxRunner(StagePlan("outbox", "outbox", {}), outbox, sinks=sinks, retry=parts.retry)
    made = Event(stamp(0), "e0", "i0", "single", b"{}")
    outbox.accept([Item("cam", Key(0, 0, 0), made, "rules")])
    outbox.db.execute("PRAGMA query_only = 1")
    runner.end("cam", End(stamp(0)))
    assert waited == [False]
    assert sink.ended
    assert outbox.over("log")
    outbox.close()
    assert not list(tmp_path.glob("outbox*"))


def test_the_end_comes_after_events_that_waited_for_a_note(tmp_path: Path) -> None:
    context, names = HandContext(tmp_path, tmp_path), [f"e{n}" for n in range(2500)]
    values = {"path": str(tmp_path / "outbox.sqlite"), "sinks": {"log": []}}
    outbox = Outbox(Outbox.settings_type.model_validate(values), context)
    outbox.open()
    sink = Log(Settings(), context)
    parts = process_parts(pause=lambda seconds: False)
    sinks = {"log": StageRunner(StagePlan("log", "log", {}), sink, parts)}
    runner = OutboxRunner(StagePlan("outbox", "outbox", {}), outbox, sinks=sinks, retry=parts.retry)
    made = [Event(stamp(n), name, name, "single", b"{}") for n, name in enumerate(names)]
    outbox.accept([Item("cam", Key(0, n, 0), event, "rules") for n, event in enumerate(made)])
    with patch.object(outbox, "try_to_note"):  # as while somebody has locked the file
        runner.run([])
        assert sink.got == names[:MOST_REPEATED]
        runner.end("cam", End(stamp(0)))
    assert sink.got == names
    assert sink.ended
    outbox.close()


def test_kept_events_count_as_work_between_deaths(
    tmp_path: Path,
) -> None:
    values = {"path": str(tmp_path / "outbox.sqlite"), "sinks": {"log": []}}
    outbox = Outbox(Outbox.settings_type.model_validate(values), HandContext(tmp_path, tmp_path))
    outbox.open()
    parts = process_parts(pause=lambda seconds: False)
    runner = OutboxRunner(StagePlan("outbox", "outbox", {}), outbox, sinks={}, retry=parts.retry)
    made = [Event(stamp(n), f"e{n}", f"i{n}", "single", b"{}") for n in range(3)]
    runner.run([Item("cam", Key(0, n, 0), event, "rules") for n, event in enumerate(made)])
    assert runner.times.snapshot()["items"] == 3
    outbox.close()


def test_a_file_that_cannot_be_read_for_a_while_is_waited_for(tmp_path: Path) -> None:
    context = HandContext(tmp_path, tmp_path)
    values = {"path": str(tmp_path / "outbox.sqlite"), "sinks": {"log": []}}
    outbox = Outbox(Outbox.settings_type.model_validate(values), context)
    outbox.open()
    outbox.accept([Item("cam", Key(0, 0, 0), Event(stamp(0), "e0", "i0", "single", b"{}"), "rules")])
    outbox.db.set_progress_handler(lambda: 1, 1)  # each statement is interrupted
    waited: list[str] = []

    def pause(seconds: float) -> bool:
        waited.append(parts.retry.waits_for)
        outbox.db.set_progress_handler(None, 0)
        return False

    parts = process_parts(pause=pause)
    sinks = {"log": StageRunner(StagePlan("log", "log", {}), Log(Settings(), context), parts)}
    runner = OutboxRunner(StagePlan("outbox", "outbox", {}), outbox, sinks=sinks, retry=parts.retry)
    runner.run([])
    assert len(waited) == 1
    assert "cannot be read" in waited[0]
    outbox.try_to_note(1.0)
    assert outbox.over("log")
    outbox.close()
