"""Runs a program of yours for each event, with the event on its standard input.

    siren: {use: sink_command, from: actions, with: {command: [./siren.sh, "on"], only: {rule: fall}}}

The program gets one line of JSON, and its main facts as variables of the environment: CAMGRAPH_ACTION, _CAMERA, _RULE,
_SEVERITY, _PHASE, _TIME, _INCIDENT, _SNAPSHOT, _CLIP. It is started without a shell, so nothing in an event is
ever taken for a command. One runs at a time, in the order of the events.

| it ends | then |
|---|---|
| with status 0 | the event is delivered |
| with another status, by a signal, or after `limit` | it is started again, up to `tries` times; then the event
goes to the dead letters |
| it cannot be started | the event waits, and it is tried again |
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from pydantic import Field

from pipeline.errors import Unavailable
from pipeline.foreign_text import shown
from pipeline.stage import Context, SettingProblems
from stages.delivery.durations import Duration, seconds
from stages.delivery.event_sink import DeliverySettings, EventSink, Refused
from stages.delivery.event_view import EventView
from stages.delivery.template import filled
from stages.messages import Event

_TURN_S = 1.0
"""How long one call waits for the program; the process goes on listening between two calls."""
_LAST_WORDS = 500
_VARIABLES = ("action", "camera", "rule", "severity", "phase", "incident")
_KILL_AFTER_S = 2.0


class SinkCommandSettings(DeliverySettings):
    """The program, and how long it may take."""

    command: list[str] = Field(
        min_length=1, description="The program and its arguments. A path with a `/` is relative to the graph file"
    )
    limit: Duration = Field("30s", description="The program is killed if it takes longer")
    tries: int = Field(3, ge=1, le=100, description="How often it is started for an event before that is given up")
    pass_environment: list[str] = Field(
        [], description="Further variables of the environment for the program, beside PATH, HOME, LANG and TZ"
    )


class SinkCommand(EventSink[SinkCommandSettings]):
    """An event -> a process."""

    settings_type = SinkCommandSettings

    def __init__(self, settings: SinkCommandSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._program: _Program | None = None
        self._failures = 0

    @classmethod
    def check(cls, settings: SinkCommandSettings, base_folder: Path) -> SettingProblems:
        why = _why_not_startable(settings.command[0], base_folder)
        if why:
            yield ("command", 0), why

    @classmethod
    def environment(cls, settings: SinkCommandSettings) -> Iterable[str]:
        return ["PATH", "HOME", "LANG", "TZ", *settings.pass_environment]

    def send(self, events: Sequence[EventView]) -> None:
        for view in events:
            self._run(view)
            self.sent_already(view)

    def _run(self, view: EventView) -> None:
        """Return once the program has ended well; raises Unavailable while it runs or if it will be tried again."""
        if self._program is None or self._program.event_id != view.event.id:
            self.disconnect()  # the event before it has expired
            self._program = self._start(view)
        if not self._program.ended(_TURN_S):
            raise Unavailable("the program is running", patient=True)
        why, self._program = self._program.why_failed(), None
        if not why:
            self._failures = 0
            return
        self._failures += 1
        if self._failures < self.settings.tries:
            raise Unavailable(why)
        self._failures = 0
        times = f", {self.settings.tries} times" if self.settings.tries > 1 else ""
        raise Refused({view.event.id: why + times})

    def _start(self, view: EventView) -> _Program:
        try:
            return _Program(
                view.event,
                _absolute(self.settings.command, self.context.base_folder),
                {**os.environ, **_facts(view, self.context.base_folder)},
                seconds(self.settings.limit),
            )
        except OSError as error:
            raise Unavailable(f"{self.settings.command[0]}: cannot be started: {error.strerror}") from None

    def disconnect(self) -> None:
        if self._program is not None:
            self._program.kill()
            self._program.close()
            self._program = None


class _Program:
    """One running program, in a group of its own, so that its children are killed with it."""

    def __init__(self, event: Event, command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> None:
        self.event_id = event.id
        self._limit_s = limit_s
        self._until_s = time.monotonic() + limit_s
        self._late = False
        self._name = Path(command[0]).name
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        with tempfile.TemporaryFile() as line:  # not a pipe: a program that does not read it must not block
            line.write(event.body + b"\n")
            line.seek(0)
            self._process = subprocess.Popen(  # noqa: S603 - the user's own program, without a shell
                _bounded(command, limit_s),
                stdin=line,
                stdout=self._words,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )

    def ended(self, wait_s: float) -> bool:
        """Wait at most so long; kills it when its time is over."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, min(wait_s, self._until_s - time.monotonic())))
        if self._process.poll() is None and time.monotonic() >= self._until_s:
            self._late = True
            self.kill()
        return self._process.poll() is not None

    def why_failed(self) -> str:
        """ "" if it has ended well; its last words otherwise."""
        status = self._process.returncode
        words = self._last_words()
        self.close()
        if self._late or status in _TIMED_OUT:
            return f"{self._name}: did not end within {self._limit_s:g} s"
        if status == 0:
            return ""
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"{self._name}: {how}" + (f": {words}" if words else "")

    def _last_words(self) -> str:
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, size - _LAST_WORDS))
        return shown(self._words.read().decode(errors="replace").strip())

    def kill(self) -> None:
        """End it and its children."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """Forget its last words."""
        self._words.close()


_TIMED_OUT = (124, 137)
"""The statuses of `timeout` from the GNU tools."""


def _bounded(command: Sequence[str], limit_s: float) -> Sequence[str]:
    """The command under `timeout`, if there is one: so it also ends in time if this process is killed."""
    timeout = shutil.which("timeout")
    return (
        [timeout, f"--kill-after={_KILL_AFTER_S:g}", f"{limit_s + _KILL_AFTER_S:g}", *command] if timeout else command
    )


def _absolute(command: Sequence[str], base_folder: Path) -> list[str]:
    program = command[0]
    return [str(base_folder / program) if "/" in program else program, *command[1:]]


def _why_not_startable(program: str, base_folder: Path) -> str:
    if "/" not in program:
        return "" if shutil.which(program) else f"there is no program {shown(program)} on the PATH: write its path"
    path = base_folder / program
    if not path.is_file():
        return f"there is no file {path}"
    return "" if os.access(path, os.X_OK) else f"{path} may not be started: make it executable with `chmod +x`"


def _facts(view: EventView, base_folder: Path) -> dict[str, str]:
    facts = {name: filled(f"{{{name}}}", view, "UTC") for name in _VARIABLES}
    facts |= {"action": view.action, "time": str(view.body.get("time", ""))}
    for name in ("snapshot", "clip"):
        file: Any = view.data.get(name)
        facts[name] = str(base_folder / file) if isinstance(file, str) else ""
    return {f"CAMGRAPH_{name.upper()}": value.replace("\0", "") for name, value in facts.items()}
