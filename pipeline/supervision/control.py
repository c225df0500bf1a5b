"""The control socket of a run: small JSON requests from `camgraph` commands, and the supervisor's answers.

The socket is a side channel, in the supervisor's loop, which waits for no slow work: a `Later` is an answer that a
thread prepares. Messages are texts of JSON, so that a false run cannot give any other values to a command.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog

from camgraph.pipeline.errors import EXIT_USER, CamgraphError
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.pipeline.system.side_channel import Client, SideChannel
from camgraph.pipeline.system.side_link import framed

_MAX_REQUEST = 1 << 24
_MOST_CLIENTS = 64
_REQUEST_S = 30.0
"""For a client to send its request, and to take the answer: with a plan of many cameras, on a busy machine."""
_LONGEST_OP = 40
_NOT_ANSWERED = "the run could not read this request: is it from another version of camgraph than the run's?"

A = TypeVar("A")
T = TypeVar("T")
Answer = dict[str, Any]


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


class ControlServer:
    """The supervisor's side of the socket. `serve` answers the requests that have arrived. Raises OSError."""

    def __init__(self, path: Path, answer: Callable[[dict[str, Any]], Answer | Later[Any]]) -> None:
        self._answer = answer
        self._later: list[tuple[Client, Later[Any]]] = []
        self._log = structlog.get_logger()
        self._channel = SideChannel(
            path,
            self._asked,
            self._log,
            name="control",
            within_s=_REQUEST_S,
            most_request=_MAX_REQUEST,
            most_clients=_MOST_CLIENTS,
        )
        self._channel.open()
        self.fileno, self.close = self._channel.fileno, self._channel.close

    def serve(self) -> None:
        """Answer the requests that have arrived, and earlier ones whose answers are ready now."""
        for client, later in list(self._later):
            come = self._guarded("", later.poll)
            if come is not None:
                self._later.remove((client, later))
                client.end(framed(_as_text(come)))
        self._channel.turn()

    @property
    def owes(self) -> bool:
        """Whether a client waits for an answer, or has a deadline, so that `serve` is needed though nothing arrives."""
        return bool(self._later) or self._channel.is_busy

    def _asked(self, client: Client) -> str | None:
        answer = self._answer_to(client.message)
        if isinstance(answer, Later):
            self._later.append((client, answer))
            return None
        return _as_text(answer)

    def _answer_to(self, text: Any) -> Answer | Later[Any]:
        """Answer a request. An error in it, or a bug while it is answered, becomes an answer too: the run goes on."""
        try:
            request = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            return {"error": "expected a JSON object with `op`, the name of a request"}
        return self._guarded(str(request.get("op"))[:_LONGEST_OP], lambda: self._answer(request))

    def _guarded(self, op: str, answer: Callable[[], A]) -> A | Answer:
        try:
            return answer()
        except Exception as bug:  # noqa: BLE001 - who asks nonsense, or a bug in the answer, must not end the run
            self._log.exception("request_failed", op=op)
            return {"error": f"{_NOT_ANSWERED} ({type(bug).__name__}); its log has the details"}


def _as_text(answer: dict[str, Any]) -> str:
    if "error" in answer:
        answer = {**answer, "error": redact_urls(str(answer["error"]))}
    return json.dumps(answer)
