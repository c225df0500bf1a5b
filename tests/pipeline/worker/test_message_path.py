"""A process gets a plan with other cameras: the order of the changes, and the reasons to refuse it whole."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.plan import ProcessPlan, StagePlan
from camgraph.pipeline.worker.message_path import MessagePath

BEFORE = ProcessPlan("capture.0", (StagePlan("capture", "capture", {}),), ("front", "yard"), 4, (), {})


class Noted:
    """Notes its calls under its name."""

    def __init__(self, calls: list[str], name: str, failure: Exception | None = None) -> None:
        self._calls, self._name, self._failure = calls, name, failure

    def __getattr__(self, call: str) -> Any:
        def note(argument: Any) -> None:
            if self._failure:
                raise self._failure
            shown = argument if isinstance(argument, str) else "+".join(getattr(argument, "cameras", argument) or ())
            self._calls.append(f"{self._name}.{call}({shown})")

        return note


class Chain(Noted):
    """Has a plan, and an outbox if the test wants one."""

    def __init__(self, calls: list[str], outbox: Outbox | None = None) -> None:
        super().__init__(calls, "chain")
        self.plan = BEFORE
        self.runners = {"outbox": SimpleNamespace(stage=outbox)} if outbox else {}


def outbox_of(*, all_ended: bool) -> Outbox:
    class Standing(Outbox):
        def __init__(self) -> None:
            self.expects_more = False

    Standing.all_ended = property(lambda _: all_ended)  # type: ignore[assignment, method-assign]
    return Standing()


def change(
    after: ProcessPlan, *, outbox: Outbox | None = None, ring: Exception | None = None, receiver: bool = True
) -> tuple[str, list[str]]:
    """Return the problem, and the calls in their order."""
    calls: list[str] = []
    boot: Any = SimpleNamespace(plan=after)
    parts: Any = {name: Noted(calls, name) for name in ("sources", "sender", *(("receiver",) if receiver else ()))}
    memory: Any = SimpleNamespace(resize=lambda sizes: _resized(calls, ring))
    chain: Any = Chain(calls, outbox)
    path = MessagePath(**{"receiver": None, **parts}, input_loop=None, chain=chain, ring=memory, relay=None)
    return path.revise(boot, lambda _, camera: camera), calls  # type: ignore[arg-type, return-value]


def _resized(calls: list[str], failure: Exception | None) -> None:
    if failure:
        raise failure
    calls.append("ring.resize")


def test_every_part_learns_of_the_plan_and_memory_comes_first() -> None:
    problem, calls = change(replace(BEFORE, cameras=("front",)))
    assert problem == ""
    assert calls == [
        "ring.resize",
        "sender.revise()",
        "receiver.revise(front)",
        "chain.revise(front)",
        "sources.keep_only(front)",
    ]


def test_only_new_cameras_of_a_process_with_sources_get_a_source() -> None:
    coming = ("front", "yard", "door")
    with_sources = replace(BEFORE, sources=("capture",), cameras=coming)
    assert change(with_sources)[1][-1] == "sources.add(door)"
    assert not any(call.startswith("sources.add") for call in change(replace(BEFORE, cameras=coming))[1])


def test_a_process_that_nobody_sends_to_has_no_receiver() -> None:
    problem, calls = change(BEFORE, receiver=False)
    assert problem == ""
    assert not any(call.startswith("receiver") for call in calls)


def test_a_plan_for_which_there_is_no_memory_changes_nothing() -> None:
    problem, calls = change(replace(BEFORE, cameras=("door",)), ring=EnvironmentProblem("no room in /dev/shm"))
    assert (problem, calls) == ("no room in /dev/shm", [])


@pytest.mark.parametrize("coming", [True, False])
def test_an_outbox_behind_its_end_takes_no_more_cameras(coming: bool) -> None:
    after = replace(BEFORE, cameras=("front", "door") if coming else ("front",))
    problem, calls = change(after, outbox=outbox_of(all_ended=True))
    assert problem == ("the run is at its end" if coming else "")
    assert (calls == []) == coming


def test_the_outbox_learns_whether_more_cameras_are_expected() -> None:
    outbox = outbox_of(all_ended=False)
    change(replace(BEFORE, cameras=("front", "door"), expects_more=True), outbox=outbox)
    assert outbox.expects_more
