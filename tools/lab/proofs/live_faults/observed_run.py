"""A live run whose output goes into a record and is searched for secrets."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.tools.lab.proofs.live_faults.record import Record
from camgraph.tools.lab.proofs.trials.run import LiveRun
from camgraph.tools.lab.proofs.trials.subject import Subject
from camgraph.tools.lab.proofs.trials.tail import Tail
from camgraph.tools.measuring.processes import command_lines, tree
from camgraph.tools.measuring.processor_time import cpu_time

_ASK_S = 0.5
_CMDLINES_S = 5.0


class ObservedRun:
    """Between `with` and its end the graph runs. Call `look` often.

    ``environment``: the variables of the graph file, ``secrets``: texts that must not show anywhere.
    """

    def __init__(self, subject: Subject, environment: Mapping[str, str], secrets: Sequence[str]) -> None:
        self.subject = subject
        self.record = Record(time.time() - time.monotonic())
        self.disclosure = Disclosure(secrets)
        self._run = LiveRun(subject, environment=environment)
        self._tails = {path: Tail(path) for path in (self._run.log, subject.events)}
        self._next_ask_s = self._next_cmdlines_s = 0.0

    def __enter__(self) -> Self:
        self._run.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._run.has_ended:
            self._run.kill()

    @property
    def pid(self) -> int:
        """Of the supervisor."""
        return self._run.pid

    @property
    def problems_reported(self) -> list[str]:
        """The problems that the run printed at its end."""
        return self._run.problems()

    def look(self) -> None:
        """Read the new output. Raises EnvironmentProblem when the run has ended."""
        now_s = time.monotonic()
        self._read_all()
        if now_s >= self._next_ask_s:
            self._next_ask_s = now_s + _ASK_S
            self._ask()
            self.record.work.append(cpu_time())
        if now_s >= self._next_cmdlines_s:
            self._next_cmdlines_s = now_s + _CMDLINES_S
            self.disclosure.search("a command line", command_lines(tree(self.pid)))
        if self._run.has_ended:
            raise EnvironmentProblem(f"the run has ended with {self._run.wait(0)}: {self._run.log.read_text()}")

    def stop(self) -> int:
        """End it in order; its exit status."""
        status = self._run.stop()
        self._read_all()
        return status

    def _ask(self) -> None:
        """Ask for the status. A run that starts or is slow gives no answer, which the figures then show as lateness."""
        if status := self._run.status():
            self.disclosure.search("status", json.dumps(status))
            self.record.status(status, time.monotonic())

    def _read_all(self) -> None:
        self._read(self._run.log, self.record.log_line)
        self._read(self.subject.events, self.record.event)

    def _read(self, path: Path, note: Callable[[Mapping[str, Any], float], None]) -> None:
        for line in self._tails[path].lines():
            self.disclosure.search(path.name, line)
            if line.startswith("{"):
                note(json.loads(line), time.monotonic())


class Disclosure:
    """Searches texts that must not have any for ``secrets``, also as these are written in an address. Pure."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._forms = {form for secret in secrets for form in (secret, quote(secret, safe=""), quote(secret))}
        self.places: Counter[str] = Counter()
        self.searched: Counter[str] = Counter()
        """Place -> texts."""

    def search(self, place: str, text: str) -> None:
        """Count the text for its place, and note it if it has a secret."""
        self.searched[place] += 1
        self.places[place] += any(form in text for form in self._forms)

    @property
    def found(self) -> dict[str, int]:
        """Place -> texts with a secret in them."""
        return {place: n for place, n in self.places.items() if n}
