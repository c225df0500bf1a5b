"""`camgraph run` as a process of its own, and all that it writes: into a record, and searched for what is secret."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pipeline.control import ask
from pipeline.errors import EnvironmentProblem, UserError
from tools.live_faults.disclosure import Disclosure
from tools.live_faults.graph import EVENTS
from tools.live_faults.processes import command_lines, cpu_s, machine_cpu_s, tree
from tools.live_faults.record import Record, Work

_ASK_S = 0.5
_CMDLINES_S = 5.0
_END_S = 60.0


class ObservedRun:
    """Between `with` and its end the graph runs. `look` is to be called often."""

    def __init__(self, graph: Path, name: str, environment: Mapping[str, str], secrets: Sequence[str]) -> None:
        self.name = name
        self.log = graph.parent / "log.jsonl"
        self.record = Record(time.time() - time.monotonic())
        self.disclosure = Disclosure(secrets)
        self.said: list[str] = []
        """What else than logs it wrote: the problems, at its end."""
        self._graph = graph
        self._environment = {**os.environ, "XDG_STATE_HOME": str(graph.parent / "state"), **environment}
        self._tails = {self.log: _Tail(self.log), graph.parent / EVENTS: _Tail(graph.parent / EVENTS)}
        self._next_ask_s = self._next_cmdlines_s = 0.0

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tools.cli", "run", str(self._graph), "--json-logs"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                command, stderr=log, stdout=log, env=self._environment, process_group=0
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """Of the supervisor."""
        return self._process.pid

    def look(self) -> None:
        """Read what is new. Raises EnvironmentProblem when the run has ended."""
        now_s = time.monotonic()
        self._read(self.log, self.record.log_line)
        self._read(self._graph.parent / EVENTS, self.record.event)
        if now_s >= self._next_ask_s:
            self._next_ask_s = now_s + _ASK_S
            self._ask()
            # Ours is all that comes from this process: the run, the farm, and those who look.
            all_s = machine_cpu_s()
            self.record.work.append(Work(now_s, all_s, all_s - cpu_s(os.getpid())))
        if now_s >= self._next_cmdlines_s:
            self._next_cmdlines_s = now_s + _CMDLINES_S
            self.disclosure.search("a command line", command_lines(tree(self.pid)))
        if self._process.poll() is not None:
            raise EnvironmentProblem(f"the run has ended with {self._process.returncode}: {self.log.read_text()}")

    def stop(self) -> int:
        """End it in order; its exit status."""
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(_END_S)
        self._read(self.log, self.record.log_line)
        self._read(self._graph.parent / EVENTS, self.record.event)
        return status

    def _ask(self) -> None:
        try:
            status = ask(self.name, "status")
        except (EnvironmentProblem, UserError):
            return  # it has not begun, or is slow: what it does not say in time is late, and that is measured
        self.disclosure.search("status", json.dumps(status))
        self.record.status(status, time.monotonic())

    def _read(self, path: Path, note: Callable[[Mapping[str, Any], float], None]) -> None:
        for line in self._tails[path].lines():
            self.disclosure.search(path.name, line)
            if line.startswith("{"):
                note(json.loads(line), time.monotonic())
            else:
                self.said.append(line)


class _Tail:
    """The lines of a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0

    def lines(self) -> list[str]:
        """The new ones that are complete."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._place)
            data = file.read()
        whole, _, _ = data.rpartition(b"\n")
        self._place += len(whole) + 1 if whole else 0
        return whole.decode().split("\n") if whole else []
