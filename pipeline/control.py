"""The control socket of a run: small JSON questions and answers between `camgraph` commands and the supervisor."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import structlog
import zmq

from pipeline.errors import EnvironmentProblem, UserError
from pipeline.paths import runs_folder
from pipeline.redaction import redact_urls
from pipeline.run_folder import has_control, running, unlink_socket
from pipeline.spelling import did_you_mean

_MAX_REQUEST = 1 << 24
_MOST_WAITING = 8
"""Of one client; who asks waits for the answer before the next question."""
_ANSWER_MS = 5000
_LONGEST_OP = 40
_NOT_ANSWERED = "the run could not make sense of this request: is it of the camgraph that the run began with?"


class ControlServer:
    """The supervisor's side: answers what has arrived when asked to."""

    def __init__(self, address: str, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._answer = answer
        self._log = structlog.get_logger()
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.MAXMSGSIZE, _MAX_REQUEST)
        self.socket.setsockopt(zmq.RCVHWM, _MOST_WAITING)
        unlink_socket(address)
        self.socket.bind(address)

    def serve(self) -> None:
        """Answer every request that is there."""
        while True:
            try:
                identity, *parts = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            with contextlib.suppress(zmq.ZMQError):  # whoever asked may be gone
                self.socket.send_multipart([identity, b"", self.reply(parts[-1])], zmq.NOBLOCK)

    def reply(self, data: bytes) -> bytes:
        """The answer to a request. Whatever is wrong with it, or breaks in answering it, the run goes on."""
        try:
            request = json.loads(data)
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            return _as_bytes({"error": "expected a JSON object with `op`, the name of a request"})
        try:
            return _as_bytes(self._answer(request))
        except Exception as bug:  # noqa: BLE001 - who asks nonsense, or a bug in the answer, must not end the run
            self._log.exception("request_failed", op=str(request.get("op"))[:_LONGEST_OP])
            return _as_bytes({"error": f"{_NOT_ANSWERED} ({type(bug).__name__}); its log has the details"})

    def close(self) -> None:
        self.socket.close(0)


def _as_bytes(answer: dict[str, Any]) -> bytes:
    if "error" in answer:
        answer = {**answer, "error": redact_urls(str(answer["error"]))}
    return json.dumps(answer).encode()


def find_run(name: str | None) -> str:
    """The run that is meant: the named one, or the only one. Raises UserError."""
    runs = running()
    if name is None and len(runs) == 1:
        name = runs[0]
    if name in runs:
        if has_control(name):
            return name
        raise UserError(f"the run {name} has everything in one process, and no socket: see and stop it where it runs")
    if not runs:
        raise UserError(
            f"{f'no run called {name}: ' if name else ''}nothing is running; `camgraph run GRAPH` starts a graph"
        )
    going = f"running: {', '.join(runs)}"
    raise UserError(
        f"no run called {name}; {going}{did_you_mean(name, runs)}"
        if name
        else f"which run? choose with --name; {going}"
    )


def ask(name: str, op: str, **values: Any) -> dict[str, Any]:
    """Put a question to a run; `pipeline.requests` has them. Raises EnvironmentProblem when it does not answer.

    What it refuses raises UserError.
    """
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
    socket.setsockopt(zmq.LINGER, 0)
    try:
        socket.connect(f"ipc://{runs_folder() / name}/control")
        socket.send(json.dumps({"op": op, **values}).encode())
        if not socket.poll(_ANSWER_MS):
            raise EnvironmentProblem(
                f"the run {name} does not answer within {_ANSWER_MS / 1000:g} s: try again, and see its log"
            )
        answer = json.loads(socket.recv())
    finally:
        socket.close(0)
    if "error" in answer:
        raise UserError(answer["error"])
    return dict(answer)
