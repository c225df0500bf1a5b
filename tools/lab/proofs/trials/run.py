"""A run of the subject as a user starts it: `camgraph run` in a process of its own, to be asked, stopped and killed."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.supervision.control_client import ask
from camgraph.tools.lab.proofs.trials.subject import Subject

_LOOK_S = 0.05
_STOP_S = 60.0


class LiveRun:
    """From `start` to `stop`, or until it is killed. State and log lie beside the graph.

    `wrapper` stands before the command (`["unshare", ...]`); `limits`: resource -> soft and hard limit from the start;
    `environment`: variables beside those of this process.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        wrapper: Sequence[str] = (),
        limits: Mapping[int, int] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.subject = subject
        self._environment = dict(environment or {})
        self._wrapper = list(wrapper)
        self._limits = dict(limits or {})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def log(self) -> Path:
        """Its output: one JSON object a line, and the problems at its end."""
        return self.subject.folder / "run.log"

    @property
    def outbox(self) -> Path:
        """The file in which events are committed."""
        return self._state / "camgraph" / self.subject.name / "outbox.sqlite"

    @property
    def pid(self) -> int:
        """Of the supervisor."""
        assert self._process is not None
        return self._process.pid

    @property
    def _state(self) -> Path:
        return self.subject.folder / "state"

    def start(self) -> None:
        """Start it; it may not be up yet. To be called again after a death."""
        command = [sys.executable, "-P", "-m", "camgraph.tools.cli", "run", str(self.subject.graph), "--json-logs"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [*self._wrapper, *command],
                stdout=log,
                stderr=log,
                env={**os.environ, "XDG_STATE_HOME": str(self._state), **self._environment},
                preexec_fn=self._limit if self._limits else None,  # noqa: PLW1509 - one thread here
                process_group=0,
            )

    def _limit(self) -> None:
        for number, limit in self._limits.items():
            resource.setrlimit(number, (limit, limit))

    # ---- its output

    def status(self) -> dict[str, Any]:
        """The status of the run; empty while it does not answer."""
        try:
            return ask(self.subject.name, "status")
        except CamgraphError:
            return {}

    def processes(self) -> dict[str, dict[str, Any]]:
        """Name -> pid, state, restarts, ...; empty while it does not answer."""
        return dict(self.status().get("processes", {}))

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The lines of its log of this event."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines() if self.log.exists() else ():
            with contextlib.suppress(ValueError):
                values = json.loads(line)
                if isinstance(values, dict) and values.get("event") == event:
                    found.append(values)
        return found

    def problems(self) -> list[str]:
        """Why its exit status is not 0, or what was reported at its end; and whatever is no line of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return [problem for line in lines if (problem := _problem(line))]

    def until(self, condition: Callable[[dict[str, Any]], bool], within_s: float, what: str) -> float:
        """Wait until its status is so; how long that took. Raises TimeoutError, also when the run ends before."""
        begun = time.monotonic()
        while not ((status := self.status()) and condition(status)):
            if time.monotonic() - begun > within_s or self.has_ended:
                raise TimeoutError(f"{what}: not so within {within_s:g} s: {_short(status)} {self.problems()[-3:]}")
            time.sleep(_LOOK_S)
        return time.monotonic() - begun

    def until_live(self, within_s: float = 60.0) -> float:
        """Wait until all cameras are live and all processes run; how long that took."""
        return self.until(is_whole, within_s, "all live")

    # ---- its end

    @property
    def has_ended(self) -> bool:
        """True when the supervisor is dead."""
        return self._process is None or self._process.poll() is not None

    def wait(self, within_s: float) -> int:
        """Its exit status, when it has ended by itself. Raises subprocess.TimeoutExpired."""
        assert self._process is not None
        return self._process.wait(within_s)

    def stop(self, within_s: float = _STOP_S) -> int:
        """Ask it to end, as Ctrl-C does; its exit status. Raises subprocess.TimeoutExpired."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(within_s)

    def kill(self) -> bool:
        """SIGKILL. Whether it was running, and died of this."""
        if self._process is None:
            return False
        self._process.kill()  # nothing, if `poll` knows that it has ended
        return self._process.wait() == -signal.SIGKILL


def _problem(line: str) -> str:
    """The problem in a line of a run with `--json-logs`; "" if it is another line of the log."""
    try:
        values = json.loads(line)
    except ValueError:
        return line
    return str(values.get("why", values)) if values.get("event") in ("problem", "failed", "crashed") else ""


def is_whole(status: Mapping[str, Any]) -> bool:
    """True when all processes run and all cameras are live."""
    return all(process["state"] == "running" for process in status["processes"].values()) and all(
        camera["state"] == "live" for camera in status["cameras"].values()
    )


def _short(status: Mapping[str, Any]) -> str:
    cameras = {name: (c["state"], c["why"]) for name, c in status.get("cameras", {}).items() if c["state"] != "live"}
    processes = {name: u["state"] for name, u in status.get("processes", {}).items() if u["state"] != "running"}
    return f"{cameras} {processes}" if status else "no answer"
