"""The run that is served, asked over its control socket. May be used from several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import CamgraphError, EnvironmentProblem
from pipeline.supervision.control import ask
from pipeline.system.names import nfc
from pipeline.system.paths import runs_folder
from stages.footage.picture_service import NAME, ServedPicture, ask_picture

FRESH_S = 1.0
"""For so long a state is given to all who ask: the run is asked once a second at most, however many look."""
NO_ANSWER = {503: "the run does not answer"}
"""`Call.errors` of a call that asks it."""
_WITHIN_S = 4.0
"""A run that has not answered by then counts as down."""


class _Kept:
    """The answer of a run to one request, which all who ask within `FRESH_S` are given."""

    def __init__(self, run: str, op: str) -> None:
        self._run, self._op = run, op
        self._asking = threading.Lock()
        self._answer: Mapping[str, Any] = {}
        self._until_s = 0.0
        self._failed: EnvironmentProblem | None = None

    def get(self) -> Mapping[str, Any]:
        """Raises EnvironmentProblem without an answer, UserError without a run."""
        with self._asking:
            if time.monotonic() >= self._until_s:
                self._renew()
            if self._failed is not None:
                raise self._failed
            return self._answer

    def _renew(self) -> None:
        self._failed = None
        try:
            self._answer = ask(self._run, self._op, within_s=_WITHIN_S)
        except EnvironmentProblem as problem:
            # All who wait get this answer: otherwise each of them would wait anew, one after another.
            self._failed = problem
        self._until_s = time.monotonic() + FRESH_S

    def forget(self) -> None:
        with self._asking:
            self._until_s = 0.0


class RunLink:
    """See the module. `name`: of the run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._status, self._graph = _Kept(name, "status"), _Kept(name, "graph")

    def status(self) -> Mapping[str, Any]:
        """As `camgraph status --json`. Raises EnvironmentProblem without an answer, UserError without a run."""
        return self._status.get()

    def graph(self) -> Mapping[str, Any]:
        """Its stages and edges, as `pipeline.plan.outline` tells them. Raises as `status`."""
        return self._graph.get()

    def begun_s(self) -> float:
        """When the run began, in seconds since 1970; 0 if it does not say."""
        try:
            return time.time() - float(self.status()["uptime_s"]) - FRESH_S
        except CamgraphError:
            return 0.0

    def settings(self, stages: Sequence[str]) -> Mapping[str, Any]:
        """Stage -> its settings, as `settings`, and the `base_folder` of their paths. Raises as `status`."""
        return ask(self.name, "settings", within_s=_WITHIN_S, stages=list(stages))

    def ask(self, op: str, **values: Any) -> Mapping[str, Any]:
        """Change something. Raises as `status`, and UserError if the run refuses it."""
        self._status.forget()
        self._graph.forget()
        return ask(self.name, op, within_s=10 * _WITHIN_S, **values)

    def sockets(self, pattern: str) -> list[Path]:
        """The sockets of such names in the state folders of the run's stages."""
        return sorted((runs_folder() / self.name).glob(f"*/state/*/{pattern}"))

    def picture(self, camera: str) -> ServedPicture | None:
        """The newest picture of a camera; None if the run keeps none. Raises as `ask_picture`."""
        services = self.sockets(NAME)
        return ask_picture(services[0], nfc(camera)) if services else None
