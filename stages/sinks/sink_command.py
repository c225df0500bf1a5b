"""Runs a program of yours for each event, with the event on its standard input.

    siren: {use: sink_command, from: actions, with: {command: [./siren.sh, "on"], only: {rule: fall}}}

The program gets the event as one line of JSON, and the main facts of the event as variables of the environment:
CAMGRAPH_ACTION, _CAMERA, _RULE, _SEVERITY, _PHASE, _TIME, _INCIDENT, _SNAPSHOT, _CLIP (files of `sink_footage`, as
absolute paths). The sink starts the program without a shell, so nothing in an event is ever taken for a command.

| the program | then |
|---|---|
| ends with status 0 | the event is delivered |
| ends with another status or by a signal, or takes longer than `limit` | the sink starts the program again, up to
`tries` times; then the event goes to the dead letters |
| cannot be started | the event waits, and the sink tries again |

One program runs at a time, in the order of the events. If the sink is killed, the program goes on until the next
process of the sink begins and ends the program, or for two seconds more than `limit`. The sink keeps the last 500
letters of the program's output.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from pydantic import Field

from camgraph.pipeline.errors import ProblemText, Unavailable
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.stage import Context, SettingProblems, Upstream
from camgraph.pipeline.system.redaction import LONGEST_SECRET, holds_secret, redacted_end
from camgraph.stages.messages import Event
from camgraph.stages.sinks.delivery.durations import Duration, seconds
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink, Refused
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.footage_files import FootageFiles, FootageSettings, footage_beside
from camgraph.stages.sinks.delivery.template import filled

_FIRST_LINE = 256
"""In bytes: Linux reads no more of the line that names an interpreter."""
_TURN_S = 1.0
"""How long one call waits for the program: between two calls, the process of the sink listens to others."""
_LAST_WORDS = 500
_VARIABLES = ("action", "camera", "rule", "severity", "phase", "incident")
_KEPT_BYTES = 4 * (_LAST_WORDS + LONGEST_SECRET)
"""A letter may have four bytes. Secrets are hidden before the output is cut: half a secret would not be recognised."""
_LAST_WORDS_S = 1.0
"""How long the sink waits for the last output of an ended program: a child of the program may keep the pipe open."""
_KILL_AFTER_S = 2.0
_GONE_WITHIN_S = 5.0
"""A killed process is gone at once, unless a disk or a device holds it."""


class SinkCommandSettings(DeliverySettings, FootageSettings):
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
        self._failures = _Failures()
        self._footage = FootageFiles(settings.footage_folders, context.base_folder)

    @classmethod
    def follow(cls, settings: SinkCommandSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        return {**super().follow(settings, base_folder, upstream), **footage_beside(settings, upstream)}

    @classmethod
    def check(cls, settings: SinkCommandSettings, base_folder: Path) -> SettingProblems:
        why = _why_not_startable(settings.command[0], base_folder)
        if why:
            yield ("command", 0), why
        for number, argument in enumerate(settings.command):
            if holds_secret(argument):
                yield ("command", number), _IN_PROCESS_LIST

    @classmethod
    def environment(cls, settings: SinkCommandSettings) -> Iterable[str]:
        return ["PATH", "HOME", "LANG", "TZ", *settings.pass_environment]

    def open(self) -> None:
        super().open()
        _end_left_behind(self._pid_file)

    def send(self, events: Sequence[EventView]) -> None:
        for view in events:
            self._run(view)
            self.sent_already(view)

    def _run(self, view: EventView) -> None:
        """Return once the program has ended well. Raises Unavailable while the program runs, or before another try."""
        if self._program is None or self._program.event_id != view.event.id:
            self.disconnect()  # the program of an earlier event, which has expired
            self._program = self._start(view)
        if not self._program.ended(_TURN_S):
            raise Unavailable("the program is running", patient=True)
        why, self._program = self._program.why_failed(), None
        self._pid_file.unlink(missing_ok=True)
        if not why:
            return
        failures = self._failures.another(view.event.id)
        if failures < self.settings.tries:
            raise Unavailable(why)
        times = f", {self.settings.tries} times" if self.settings.tries > 1 else ""
        raise Refused({view.event.id: why + times})

    def _start(self, view: EventView) -> _Program:
        command, base_folder = self.settings.command, self.context.base_folder
        why = _why_not_startable(command[0], base_folder)  # `timeout` would start, and end with a status
        if why:
            raise Unavailable(f"{command[0]}: cannot be started: {why}")
        try:
            return _Program(
                view.event,
                _absolute(command, base_folder),
                {**os.environ, **_facts(view, self._footage)},
                seconds(self.settings.limit),
                self._pid_file,
            )
        except OSError as error:
            raise Unavailable(f"{command[0]}: cannot be started: {error.strerror}") from None

    @property
    def _pid_file(self) -> Path:
        return self.context.state_folder / f"program.{self.context.worker}"

    def disconnect(self) -> None:
        if self._program is not None:
            self._program.kill()
            self._program = None


_IN_PROCESS_LIST = (
    "every user of this machine can read the arguments of a program: put the secret into a variable of the "
    "environment, and name that under `pass_environment`; or let the program read a file"
)


class _Failures:
    """How often the program has failed for the present event."""

    def __init__(self) -> None:
        self._event_id, self._number = "", 0

    def another(self, event_id: str) -> int:
        """Count one more failure and return their number. The failures of an earlier event do not count."""
        self._number = self._number + 1 if event_id == self._event_id else 1
        self._event_id = event_id
        return self._number


class _Program:
    """One running program, in a process group of its own, so that a kill reaches the children of the program, too."""

    def __init__(
        self, event: Event, command: Sequence[str], environment: Mapping[str, str], limit_s: float, pid_file: Path
    ) -> None:
        self.event_id = event.id
        self._limit_s = limit_s
        self._late = False
        self._name = Path(command[0]).name
        with tempfile.TemporaryFile() as line:  # not a pipe: a program that reads nothing must not block
            line.write(event.body + b"\n")
            line.seek(0)
            self._process = subprocess.Popen(  # noqa: S603 - the user's own program, without a shell
                _bounded(command, limit_s),
                stdin=line,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
        self._until_s = time.monotonic() + limit_s
        _remember(self._process.pid, pid_file)
        assert self._process.stdout
        self._output = _Output(self._process.stdout)
        try:
            self._output.start()
        except RuntimeError as error:
            self.kill()
            self._process.stdout.close()
            raise Unavailable(f"cannot read what a program says: {error}: raise ulimit -u") from error

    def ended(self, wait_s: float) -> bool:
        """Whether the program has ended. Waits at most `wait_s`, and kills a program whose time is over."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, min(wait_s, self._until_s - time.monotonic())))
        if self._process.poll() is None and time.monotonic() >= self._until_s:
            self._late = True
            self.kill()
        return self._process.poll() is not None

    def why_failed(self) -> str:
        """Why the ended program failed, with the last words of its output; "" if the status is 0."""
        status = self._process.returncode
        if status == 0:
            return ""
        # A program may itself end with a status that `timeout` uses, but then before its time is over.
        if self._late or (status in _TIMED_OUT and time.monotonic() >= self._until_s):
            return f"{self._name}: did not end within {self._limit_s:g} s"
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        words = self._output.last_words(_LAST_WORDS_S)
        return f"{self._name}: {how}" + (f": {words}" if words else "")

    def kill(self) -> None:
        """Kill the program and its children."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class _Output(threading.Thread):
    """Reads all output of a program, and keeps the end: a program whose output is not read would block."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(name="output", daemon=True)
        self._pipe = pipe
        self._end = b""

    def run(self) -> None:
        """Read until the program, and each process that the program has left behind, has closed the pipe."""
        with self._pipe as pipe:
            while some := os.read(pipe.fileno(), 1 << 16):
                self._end = (self._end + some)[-_KEPT_BYTES:]

    def last_words(self, wait_s: float) -> str:
        """The end of the output: all of it if the pipe closes within `wait_s`, else what has come until then."""
        self.join(wait_s)
        return shown(redacted_end(self._end.decode(errors="replace").strip(), _LAST_WORDS).strip())


def _remember(pid: int, file: Path) -> None:
    """Note the program for `_end_left_behind`. On a full disk, only `timeout` ends a program that was left behind."""
    with suppress(OSError):
        file.write_text(f"{pid} {_started(pid)}")


def _end_left_behind(file: Path) -> None:
    """End the program that a killed process of this sink has left running; the event of that program comes again."""
    with suppress(OSError, ValueError):
        pid, _, started = file.read_text().partition(" ")
        until_s = time.monotonic() + _GONE_WITHIN_S
        while _started(int(pid)) == started and time.monotonic() < until_s:
            os.killpg(int(pid), signal.SIGKILL)
            time.sleep(0.01)
    file.unlink(missing_ok=True)


def _started(pid: int) -> str:
    """When this living process was started, in ticks since the boot. A later process with this number has another time.

    Raises OSError if no such process lives.
    """
    state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    if state in "ZX":
        raise ProcessLookupError
    return fields[18]


_TIMED_OUT = (124, 137)
"""The statuses of `timeout` from the GNU tools."""


def _bounded(command: Sequence[str], limit_s: float) -> Sequence[str]:
    """The command, run by `timeout` if this machine has it: the program then ends in time even if this process dies."""
    timeout = shutil.which("timeout")
    return (
        [timeout, f"--kill-after={_KILL_AFTER_S:g}", f"{limit_s + _KILL_AFTER_S:g}", *command] if timeout else command
    )


def _absolute(command: Sequence[str], base_folder: Path) -> list[str]:
    program = command[0]
    return [str(base_folder / program) if "/" in program else program, *command[1:]]


def _why_not_startable(program: str, base_folder: Path) -> str:
    if "/" not in program:
        found = shutil.which(program)
        return (
            _why_no_script(Path(found))
            if found
            else ProblemText(
                f"there is no program {shown(program)} on the PATH: write its path", error_id="file-missing"
            )
        )
    path = base_folder / program
    if not path.is_file():
        return ProblemText(f"there is no file {path}", error_id="file-missing")
    if not os.access(path, os.X_OK):
        text = f"{path} may not be started: make it executable with `chmod +x`"
        return ProblemText(text, error_id="file-permission")
    return _why_no_script(path)


def _why_no_script(path: Path) -> str:
    """Why the first line of a script, `#!INTERPRETER ...`, leads nowhere; "" if there is no such line."""
    try:
        with path.open("rb") as file:
            line = file.readline(_FIRST_LINE)
    except OSError:  # a program need not be readable
        return ""
    words = re.split("[ \t]+", line[2:].decode(errors="replace").strip(" \t\n")) if line.startswith(b"#!") else [""]
    if not words[0]:
        return ""
    if Path(words[0]).name == "env" and len(words) > 1 and words[1][:1] != "-" and "=" not in words[1]:
        return "" if shutil.which(words[1]) else _no_interpreter(path, words[1])
    return "" if os.access(words[0], os.X_OK) else _no_interpreter(path, words[0])


def _no_interpreter(path: Path, name: str) -> str:
    windows = ": save it with the line breaks of Unix" if name.endswith("\r") else ""
    return f"there is no {shown(name, 100)}, which the first line of {path} names{windows}"


def _facts(view: EventView, footage: FootageFiles) -> dict[str, str]:
    facts = {name: filled(f"{{{name}}}", view, "UTC") for name in _VARIABLES}
    facts |= {"action": view.action, "time": str(view.body.get("time", ""))}
    facts |= {name: _path_of(view.data.get(name), footage) for name in ("snapshot", "clip")}
    return {f"CAMGRAPH_{name.upper()}": value.replace("\0", "") for name, value in facts.items()}


def _path_of(name: Any, footage: FootageFiles) -> str:
    """The path of a file of `sink_footage`; "" for any other file, which a program might send away."""
    with suppress(ValueError):
        return str(footage.path(name)) if isinstance(name, str) else ""
    return ""
