"""Slow work in threads, for which the loop of a run does not wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from camgraph.pipeline.errors import EXIT_USER, CamgraphError

T = TypeVar("T")


class Job(Generic[T]):
    """Work in a thread of its own, started at once. The process does not wait for it when it ends."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._found: list[T] = []
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._do, name="job", daemon=True)
        self._thread.start()

    def _do(self) -> None:
        try:
            self._found.append(self._work())
        except Exception as failure:  # noqa: BLE001 - handed on to the caller who asks for the result
            self._failure = failure

    @property
    def is_done(self) -> bool:
        """Whether `result` can be asked for."""
        return not self._thread.is_alive()

    def result(self) -> T:
        """Wait for the result of the work. Raises the error of the work."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._found[0]


Answer = dict[str, Any]


class Later(Generic[T]):
    """An answer that is not ready yet: when a job is done, and the loop polls, `then` makes the answer of its result.

    `begin` starts the job, called by the loop too: at once, or, if this answer is `behind` another, after that one is
    made. So the jobs of a line run one at a time, and each sees the changes of those before it.
    """

    def __init__(self, begin: Callable[[], Job[T]], then: Callable[[T], Answer], behind: Later[Any] | None) -> None:
        self._begin = begin
        self._then = then
        self._behind = behind
        self._job: Job[T] | None = None
        self.is_answered = False
        self._go_on()

    def poll(self) -> Answer | None:
        """Return the answer, or None if it is not ready. Raises the error of a bug in the work."""
        try:
            self._go_on()
            answer = answered(self._made) if self._job and self._job.is_done else None
        except Exception:
            self.is_answered = True
            raise
        self.is_answered = answer is not None
        return answer

    def _made(self) -> Answer:
        assert self._job
        return self._then(self._job.result())

    def _go_on(self) -> None:
        if self._job is None and (self._behind is None or self._behind.is_answered):
            self._behind = None
            self._job = self._begin()


def answered(make: Callable[[], Answer]) -> Answer:
    """Return the answer, or `error` with the reason; with the exit `status` if it is not the user's mistake."""
    try:
        return make()
    except CamgraphError as error:
        status = {} if error.exit_status == EXIT_USER else {"status": error.exit_status}
        return {"error": str(error), "error_id": error.error_id, **status}
