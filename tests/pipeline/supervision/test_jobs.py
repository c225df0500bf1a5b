"""Work beside the loop, and answers that come later: in the order in which they were asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EnvironmentProblem, UserError
from camgraph.pipeline.supervision.jobs import Answer, Job, Later, answered

LIMIT_S = 60.0


def polled(later: Later[Any]) -> Answer:
    """The answer, once it is there."""
    [answer] = until(lambda: [one for one in [later.poll()] if one is not None])
    return answer


def test_a_job_is_done_when_its_work_is() -> None:
    gate = threading.Event()
    job = Job(lambda: gate.wait(LIMIT_S))
    assert not job.is_done
    gate.set()
    assert job.result() is True
    assert job.is_done


def test_a_job_raises_what_its_work_raises() -> None:
    def work() -> int:
        raise ValueError("no")

    job = Job(work)
    with pytest.raises(ValueError, match="no"):
        job.result()


def test_answer_is_made_in_the_asking_thread() -> None:
    later = Later(lambda: Job(threading.get_ident), lambda found: {"in": found, "by": threading.get_ident()}, None)
    answer = polled(later)
    assert answer["by"] == threading.get_ident() != answer["in"]
    assert later.is_answered


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UserError("a mistake"), {"error": "a mistake", "error_id": ""}),
        (EnvironmentProblem("no disk"), {"error": "no disk", "error_id": "", "status": EXIT_ENVIRONMENT}),
    ],
)
def test_what_is_not_possible_is_an_answer(error: Exception, expected: Answer) -> None:
    def fail() -> Answer:
        raise error

    assert answered(fail) == expected
    assert polled(Later(lambda: Job(fail), lambda found: found, None)) == expected


def test_one_behind_another_begins_when_that_one_is_answered() -> None:
    gate, begun = threading.Event(), list[str]()

    def begin(name: str, work: Callable[[], object]) -> Callable[[], Job[object]]:
        def start() -> Job[object]:
            begun.append(name)
            return Job(work)

        return start

    first = Later(begin("first", lambda: gate.wait(LIMIT_S)), lambda _: {"of": "first"}, None)
    second = Later(begin("second", lambda: None), lambda _: {"of": "second"}, first)
    assert second.poll() is None
    assert begun == ["first"]
    gate.set()
    assert polled(first) == {"of": "first"}
    assert polled(second) == {"of": "second"}
    assert begun == ["first", "second"]


@pytest.mark.parametrize("where", ["work", "then"])
def test_a_bug_in_one_does_not_keep_those_behind_it_waiting(where: str) -> None:
    def fail(*_: object) -> Any:
        raise ZeroDivisionError

    first: Later[Any] = Later(
        lambda: Job(fail if where == "work" else lambda: None), fail if where == "then" else lambda _: {}, None
    )
    second = Later(lambda: Job(lambda: None), lambda _: {"of": "second"}, first)
    with pytest.raises(ZeroDivisionError):
        polled(first)
    assert first.is_answered
    assert polled(second) == {"of": "second"}


def test_failed_start_does_not_block_later_jobs() -> None:
    def no_thread() -> Job[None]:
        raise RuntimeError("can't start new thread")

    gate = threading.Event()
    first = Later(lambda: Job(lambda: gate.wait(LIMIT_S)), lambda _: {}, None)
    second = Later(no_thread, lambda _: {}, first)
    third = Later(lambda: Job(lambda: None), lambda _: {"of": "third"}, second)
    gate.set()
    assert polled(first) == {}
    with pytest.raises(RuntimeError):
        polled(second)
    assert polled(third) == {"of": "third"}
