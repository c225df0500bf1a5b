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

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from camgraph.pipeline import single_stage
from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.local import LocalRun
from camgraph.pipeline.messages import Message
from camgraph.pipeline.monitoring.outcome import Outcome
from camgraph.pipeline.outbox.outbox_folder import outbox_held
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.single_stage import AnyStage, HandContext, reports_of, stamp
from camgraph.pipeline.stage import DROPPED, Stage
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.system.run_folder import RunFolder

__all__ = ["HandContext", "feed", "hit", "opened", "reports_of", "run_graph", "stamp"]


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


def hit(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to this one process. A process that is dead has the id 0 here, which would mean our whole group."""
    assert pid > 1, f"there is no process to send a signal to: {pid}"
    os.kill(pid, number)


def run_graph(
    plan: RunPlan, during: Callable[[Supervisor], None] | None = None, *, limit_s: float = 120.0
) -> tuple[Outcome, dict[str, Any]]:
    """Run a plan to its end in real processes (or in this one, as it says): how it ended, and its last status.

    `during` is called about ten times a second with the supervisor, and may do it harm. A run that takes longer than
    `limit_s` is stopped and fails the test.
    """
    if plan.in_process:
        with outbox_held(plan):
            local = LocalRun(plan)
            return local.run(), local.status()
    folder = RunFolder(plan.graph)
    late = time.monotonic() + limit_s

    def look(supervisor: Supervisor) -> None:
        if during:
            during(supervisor)
        if time.monotonic() > late:
            supervisor.outcome.add(-1, f"not over after {limit_s:g} s: {supervisor.status()}")
            supervisor.stop()
            supervisor.stop()

    with closing(folder), outbox_held(plan):
        supervisor = Supervisor(plan, folder, look)
        return supervisor.run(), supervisor.status()
