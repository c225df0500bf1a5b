"""The loop of one process, in a thread of the test: which orders it obeys, what it reports, and how it ends.

The channel is a real one, and the test is the supervisor at its other end.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.events import Collect
from camgraph_test_stages.waiting import until

from camgraph.pipeline.boot import Boot, shm_prefix
from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.shm.segments import unlink_prefix
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.pipeline.transport.channel import Channel
from camgraph.pipeline.worker.worker import Worker

GRAPH = """
version: 1
name: worker
processes: compact
cameras: {a: {frames: 5}, b: {frames: 5}}
stages:
  src: {use: count_source, workers: 1}
  out: {use: collect, from: src, with: {path: numbers}}
"""


class Running:
    """A worker, and the reports that it has sent so far."""

    def __init__(self, boot: Boot, orders: Sequence[Mapping[str, Any]] = ()) -> None:
        ours, theirs = socket.socketpair()
        self.boot = boot
        self.channel = Channel(ours)
        self.reports: list[dict[str, Any]] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(Channel(theirs), orders), daemon=True)
        self._thread.start()

    def _run(self, channel: Channel, orders: Sequence[Mapping[str, Any]]) -> None:
        try:
            Worker(self.boot, channel, structlog.get_logger(), orders).run()
        except CamgraphError as error:
            self.error = error
        finally:
            channel.close()

    def of(self, op: str) -> list[dict[str, Any]]:
        """Return the reports of this kind that have arrived."""
        self.reports += self.channel.receive()
        return [report for report in self.reports if report["op"] == op]

    @property
    def is_over(self) -> bool:
        self.of("")
        return not self._thread.is_alive()

    def close(self) -> None:
        """Order it to close, and wait until it has."""
        self.channel.send("close")
        until(lambda: self.is_over)

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the counts as the heartbeats told them last: (name, camera) -> count."""
        return {(name, camera): n for name, camera, n in self.told().get("counts", ())}

    def told(self) -> dict[str, Any]:
        """Return the last heartbeat, whole: each has only what has changed."""
        whole: dict[str, Any] = {}
        for heartbeat in self.of("heartbeat"):
            whole.update(heartbeat)
        return whole


@pytest.fixture
def plan(tmp_path: Path) -> RunPlan:
    path = tmp_path / "graph.yaml"
    path.write_text(GRAPH)
    return load_plan(path)


@pytest.fixture
def boot(plan: RunPlan, tmp_path: Path) -> Iterator[Boot]:
    [process] = plan.processes
    prefix = shm_prefix("worker", "test", process.name, 1)
    settings = plan.camera_settings
    yield Boot(process, "worker", "worker", 1, str(tmp_path), "", prefix, str(tmp_path), settings)
    unlink_prefix(prefix)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def started(stack: ExitStack, boot: Boot, orders: Sequence[Mapping[str, Any]] = ()) -> Running:
    running = Running(boot, orders)
    stack.callback(running.channel.close)
    stack.callback(running.close)
    return running


def ended(running: Running) -> dict[str, str]:
    return {report["camera"]: report["reason"] for report in running.of("ended")}


def test_a_source_waits_for_the_order_to_start(stack: ExitStack, boot: Boot) -> None:
    running = started(stack, boot)
    until(lambda: running.of("ready") and len(running.of("heartbeat")) > 1)
    assert running.counts() == {}
    running.channel.send("start", cameras=["b"])
    until(lambda: ended(running) == {"b": "end"})
    running.close()
    assert running.counts() == {("frames", "b"): 5}


def test_orders_that_came_before_the_worker_are_obeyed(stack: ExitStack, boot: Boot, tmp_path: Path) -> None:
    running = started(stack, boot, [{"op": "start", "cameras": ["a", "b"]}])
    until(lambda: set(ended(running)) == {"a", "b"})
    running.close()
    assert len((tmp_path / "numbers").read_text().splitlines()) == 10
    assert running.reports[0] == {"op": "ready", "endpoint": ""}


def test_the_last_heartbeat_has_all_that_was_done(stack: ExitStack, boot: Boot) -> None:
    running = started(stack, boot, [{"op": "start", "cameras": ["a", "b"]}])
    until(lambda: set(ended(running)) == {"a", "b"})
    running.close()
    assert running.reports[-1]["op"] == "heartbeat"
    assert running.counts() == {("frames", "a"): 5, ("frames", "b"): 5}
    assert running.told()["in_flight"] == 0


def test_a_removed_camera_ends_for_that_reason(stack: ExitStack, boot: Boot) -> None:
    running = started(stack, boot)
    until(lambda: running.of("ready"))
    running.channel.send("remove", camera="a")
    running.channel.send("start", cameras=["a", "b"])
    until(lambda: set(ended(running)) == {"a", "b"})
    assert ended(running) == {"a": "removed", "b": "end"}


def test_another_plan_is_answered_with_its_number(stack: ExitStack, boot: Boot) -> None:
    running = started(stack, boot)
    until(lambda: running.of("ready"))
    fewer = replace(boot, plan=replace(boot.plan, cameras=("b",)))
    running.channel.send("revise", number=7, boot=fewer.to_wire())
    until(lambda: running.of("revised"))
    assert [(report["number"], report["problem"]) for report in running.of("revised")] == [(7, "")]


def other_path(boot: Boot) -> Boot:
    """The same process, whose sink is to write elsewhere."""
    stages = tuple(
        replace(stage, settings={**stage.settings, "path": "others"}) if stage.name == "out" else stage
        for stage in boot.plan.stages
    )
    return replace(boot, plan=replace(boot.plan, stages=stages))


def test_accepted_settings_are_answered_with_their_number(stack: ExitStack, boot: Boot) -> None:
    running = started(stack, boot)
    until(lambda: running.of("ready"))
    running.channel.send("settings", number=3, boot=other_path(boot).to_wire())
    until(lambda: running.of("settings_taken"))
    assert [report["number"] for report in running.of("settings_taken")] == [3]
    assert not running.is_over


@pytest.mark.parametrize(("order", "answer"), [("revise", "revised"), ("settings", "settings_taken")])
def test_secrets_that_come_with_a_change_are_hidden(stack: ExitStack, boot: Boot, order: str, answer: str) -> None:
    """Such as the password of a camera that somebody adds to the run."""
    running = started(stack, boot)
    until(lambda: running.of("ready"))
    running.channel.send(order, number=1, boot=replace(boot, secrets=("hunter2-hunter2",)).to_wire())
    until(lambda: running.of(answer))
    assert redact_urls("refused: hunter2-hunter2") == "refused: ***"


def test_settings_that_a_stage_does_not_take_close_the_process(
    stack: ExitStack, boot: Boot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(stage: Collect, settings: Any) -> None:
        raise ValueError("only a new process can")

    monkeypatch.setattr(Collect, "change_settings", refuse)
    running = started(stack, boot)
    until(lambda: running.of("ready"))
    running.channel.send("settings", number=3, boot=other_path(boot).to_wire())
    until(lambda: running.is_over)
    assert running.of("settings_taken") == []


def test_a_source_that_does_not_open_ends_its_camera_alone(stack: ExitStack, boot: Boot) -> None:
    settings = {**boot.camera_settings, "a": {**boot.camera_settings["a"], "fail": "no such file"}}
    running = started(stack, replace(boot, camera_settings=settings), [{"op": "start", "cameras": ["a", "b"]}])
    until(lambda: set(ended(running)) == {"a", "b"})
    assert ended(running) == {"a": "error", "b": "end"}
    [failed] = [report for report in running.of("ended") if report["camera"] == "a"]
    assert "no such file" in failed["error"]


def test_the_death_of_the_supervisor_ends_it(stack: ExitStack, boot: Boot) -> None:
    running = started(stack, boot)
    until(lambda: running.of("ready"))
    running.channel.close()
    until(lambda: not running._thread.is_alive())
