"""In one process, too, the sinks hear of the end when it is noted what they have."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import structlog

from pipeline.execution.context import Collector
from pipeline.execution.outbox_runner import OutboxRunner
from pipeline.execution.retry import Retry
from pipeline.execution.runner import StageRunner
from pipeline.items import Item, Key
from pipeline.messages import End, Event, Message
from pipeline.monitoring.metrics import Counters
from pipeline.outbox.outbox import Outbox
from pipeline.plan import StagePlan
from pipeline.stage import Settings, Stage
from pipeline.testing import HandContext, stamp


class Log(Stage[Settings]):
    """Takes events, and the end."""

    settings_type = Settings
    inputs = Event
    outputs: ClassVar = ()
    ended = False

    def process(self, items: list[Event]) -> list[Message]:  # type: ignore[override]
        return []

    def finish(self, camera: str, end: End) -> list[Message]:
        self.ended = True
        return []


def test_the_end_waits_until_it_is_noted_what_the_sinks_have(tmp_path: Path) -> None:
    log = structlog.get_logger()
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

    retry = Retry(pause, Collector(), log)
    sinks = {"log": StageRunner(StagePlan("log", "log", {}), sink, Counters(), retry, log)}
    runner = OutboxRunner(StagePlan("outbox", "outbox", {}), outbox, sinks=sinks, retry=retry)
    made = Event(stamp(0), "e0", "i0", "single", b"{}")
    outbox.accept([Item("cam", Key(0, 0, 0), made, "rules")])
    outbox.db.execute("PRAGMA query_only = 1")
    runner.end("cam", End(stamp(0)))
    assert waited == [False]
    assert sink.ended
    assert outbox.over("log")
    outbox.close()
    assert not list(tmp_path.glob("outbox*"))


def test_kept_events_count_as_work_between_deaths(
    tmp_path: Path,
) -> None:
    values = {"path": str(tmp_path / "outbox.sqlite"), "sinks": {"log": []}}
    outbox = Outbox(Outbox.settings_type.model_validate(values), HandContext(tmp_path, tmp_path))
    outbox.open()
    retry = Retry(lambda seconds: False, Collector(), structlog.get_logger())
    runner = OutboxRunner(StagePlan("outbox", "outbox", {}), outbox, sinks={}, retry=retry)
    made = [Event(stamp(n), f"e{n}", f"i{n}", "single", b"{}") for n in range(3)]
    runner.run([Item("cam", Key(0, n, 0), event, "rules") for n, event in enumerate(made)])
    assert runner.times.snapshot()["items"] == 3
    outbox.close()


def test_a_file_that_cannot_be_read_for_a_while_is_waited_for(tmp_path: Path) -> None:
    log = structlog.get_logger()
    context = HandContext(tmp_path, tmp_path)
    values = {"path": str(tmp_path / "outbox.sqlite"), "sinks": {"log": []}}
    outbox = Outbox(Outbox.settings_type.model_validate(values), context)
    outbox.open()
    outbox.accept([Item("cam", Key(0, 0, 0), Event(stamp(0), "e0", "i0", "single", b"{}"), "rules")])
    outbox.db.execute("ALTER TABLE pending RENAME TO away")
    waited: list[str] = []

    def pause(seconds: float) -> bool:
        waited.append(retry.waits_for)
        outbox.db.execute("ALTER TABLE away RENAME TO pending")
        return False

    retry = Retry(pause, Collector(), log)
    sinks = {"log": StageRunner(StagePlan("log", "log", {}), Log(Settings(), context), Counters(), retry, log)}
    runner = OutboxRunner(StagePlan("outbox", "outbox", {}), outbox, sinks=sinks, retry=retry)
    runner.run([])
    assert len(waited) == 1
    assert "cannot be read" in waited[0]
    outbox.try_to_note(1.0)
    assert outbox.over("log")
    outbox.close()
