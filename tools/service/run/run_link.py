"""Asks the served run over the run's control socket. Several threads may use a `RunLink` at once."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem, UserError
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.supervision.control_client import ask
from camgraph.pipeline.system.names import nfc
from camgraph.pipeline.system.paths import runs_folder
from camgraph.stages.sinks.footage.picture_service import NAME, ServedPicture, ask_picture

FRESH_S = 1.0
"""An answer is this fresh for all callers: the run is asked at most once a second, however many clients look."""
_KNOWN_S = 2.5
"""A caller gets an answer that is not older than this at once, while a thread asks the run for a newer one."""
_NO_PICTURES_S = 2.0
"""The pause after a request for a picture that failed: each such request would occupy a thread for seconds."""
NO_ANSWER = {503: "the run does not answer, or too many wait for it"}
"""`Call.errors` of a call that asks the run."""
_WITHIN_S = 4.0
"""A run that does not answer within this time counts as down."""


@dataclass(frozen=True, slots=True)
class _State:
    """The answer of the run, or why there is none.

    `asked_s`: when the answer came, by the monotonic clock. `since`: the last change before the run was asked.
    """

    answer: Mapping[str, Any]
    failed: EnvironmentProblem | None
    asked_s: float
    since: object


class _Kept:
    """The answer of a run to one request. All callers within `FRESH_S` get the same answer."""

    def __init__(self, run: str, op: str) -> None:
        self._run, self._op = run, op
        self._asking = threading.Lock()
        self._change = object()
        """A new object with each change of the run: a state from before the change is not used any more."""
        self._state = _State({}, None, -math.inf, self._change)
        """Replaced as a whole, so that a reader without the lock never gets parts of two states."""
        self._is_renewing = False

    def get(self) -> Mapping[str, Any]:
        """The answer. Raises EnvironmentProblem if the run does not answer, UserError if there is no such run."""
        state = self._state
        if state.failed is None and FRESH_S <= self._age_s(state) < _KNOWN_S:
            self._renew_beside()
            return state.answer
        with self._asking:
            state = self._state
            if self._age_s(state) >= FRESH_S:
                state = self._renew()
            if state.failed is not None:
                raise state.failed
            return state.answer

    def _age_s(self, state: _State) -> float:
        return time.monotonic() - state.asked_s if state.since is self._change else math.inf

    def _renew_beside(self) -> None:
        if not self._is_renewing:
            self._is_renewing = True
            with suppress(RuntimeError):  # the machine has no thread left: a later caller waits for the answer
                threading.Thread(target=self._renew_once, name="status", daemon=True).start()
                return
            self._is_renewing = False

    def _renew_once(self) -> None:
        try:
            with self._asking:
                self._renew()
        except UserError:  # the run is gone: the next caller gets the error
            self.forget()
        finally:
            self._is_renewing = False

    def _renew(self) -> _State:
        since, answer, failed = self._change, {}, None
        try:
            answer = ask(self._run, self._op, within_s=_WITHIN_S)
        except EnvironmentProblem as problem:
            # All callers that wait get this failure: otherwise each of them would wait anew, one after another.
            failed = problem
        state = self._state = _State(answer, failed, time.monotonic(), since)
        return state

    def forget(self) -> None:
        """Use no state any more that was asked for before this moment."""
        self._change = object()


class RunLink:
    """See the docstring of the module. `name`: of the run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._status, self._graph = _Kept(name, "status"), _Kept(name, "graph")
        self._cameras = _Kept(name, "cameras")
        self._read: tuple[Mapping[str, Any], RunStatus] = {}, RunStatus()
        """The last answer, and the status made of it. Replaced as a whole, as `_Kept` replaces its state."""
        self._begun_s, self._uptime_s = math.inf, 0.0
        self._pictures_s = -math.inf
        """No picture is asked for before this moment of the monotonic clock."""

    def status(self) -> RunStatus:
        """The present status. Raises EnvironmentProblem if the run does not answer, UserError if the run is gone."""
        answer, (known, status) = self.answer(), self._read
        if answer is not known:
            status = RunStatus.from_json(answer)
            self._read = answer, status
        return status

    def answer(self) -> Mapping[str, Any]:
        """The status as the run sends it, and as `camgraph status --json` shows it. Raises as `status`."""
        return self._status.get()

    def graph(self) -> Mapping[str, Any]:
        """The stages and edges of the run, as `pipeline.plan.outline` gives them. Raises as `status`."""
        return self._graph.get()

    def begun_s(self) -> float:
        """When the run began, in seconds since 1970; 0 if the run does not answer.

        If the clock is set forward meanwhile, the result stays the time by the old clock: incidents that go on were
        recorded by the old clock, too.
        """
        try:
            uptime_s = self.status().uptime_s
        except CamgraphError:
            return 0.0
        before_s = self._begun_s if uptime_s >= self._uptime_s else math.inf  # a smaller uptime means another run
        self._begun_s, self._uptime_s = min(before_s, time.time() - uptime_s - FRESH_S), uptime_s
        return self._begun_s

    def settings(self, stages: Sequence[str]) -> Mapping[str, Any]:
        """The settings of these stages (`settings`: stage -> settings), and the `base_folder` of paths in them.

        Raises as `status`.
        """
        return ask(self.name, "settings", within_s=_WITHIN_S, stages=list(stages))

    def graph_file(self) -> str:
        """The graph file of the run; "" if the run was not started from a file. Raises as `status`."""
        return str(self._cameras.get().get("graph_file", ""))

    def ask(self, op: str, **values: Any) -> Mapping[str, Any]:
        """Ask the run for a change. Raises as `status`, and UserError if the run refuses the change."""
        self._forget()
        try:
            return ask(self.name, op, within_s=10 * _WITHIN_S, **values)
        finally:
            self._forget()  # a caller during the change may have got the state from before

    def _forget(self) -> None:
        for kept in (self._status, self._graph, self._cameras):
            kept.forget()

    def sockets(self, pattern: str) -> list[Path]:
        """The sockets in the state folders of the run's stages whose names fit the pattern."""
        return sorted((runs_folder() / self.name).glob(f"*/state/*/{pattern}"))

    def picture(self, camera: str) -> ServedPicture | None:
        """The newest picture of a camera; None if the run keeps none. Raises as `ask_picture`."""
        if time.monotonic() < self._pictures_s:
            raise EnvironmentProblem("no picture came a moment ago: try again in some seconds", error_id="no-picture")
        services = self.sockets(NAME)
        try:
            return ask_picture(services[0], nfc(camera)) if services else None
        except EnvironmentProblem:
            self._pictures_s = time.monotonic() + _NO_PICTURES_S
            raise
