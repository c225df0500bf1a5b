"""The one way out to a person: all text for the standard output or error passes here first, and is escaped.

    print, click, warnings, tracebacks --> EscapedStream --------------------------------> terminal, file, pipe
    tables and the live display ---------> SafeConsole: its own colours, escaped texts ---^
    native libraries, on descriptor 2 ---> a pipe --> a small process of its own ---------^

That process outlives a crash, so that the last words of a library arrive. With `as_json` it writes all of the standard
error, so that no line is torn, and each is a JSON object: lines of the log as they are, and all others as {"event":
"stderr", "text": ...}. If there is no fork (Windows), descriptor 2 stays as it is.

A full disk behind the standard error ends nothing: the lines that do not fit are counted, and how many they were is
said when there is room again.
"""

from __future__ import annotations

import io
import json
import os
import selectors
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import IO, Any, NamedTuple, TextIO

import click

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EXIT_GAVE_UP
from camgraph.pipeline.foreign_text import printable
from camgraph.pipeline.supervision.lines import Lines
from camgraph.pipeline.system.confidential import forbid_dumps
from camgraph.pipeline.system.redaction import hide, redact_urls
from camgraph.tools.display.descriptor_writer import LossyFile, LossyWriter, OutputProblem, WaitingFile, write_all

JSON_LOGS = "--json-logs"
"""The option that makes JSON of the standard error, from before the command line is looked at."""
_BUG = "bug"
_PIECE = 1 << 16
_LAST_WORDS_S = 5.0
_LOOK_S = 0.01
_AGAIN_S = 1.0
"""Seconds between attempts to write waiting lines."""


class EscapedStream(io.TextIOWrapper):
    """A standard stream on which no text moves a terminal's cursor. `edit`: a further change to each text."""

    def __init__(self, raw: io.FileIO, like: TextIO, edit: Callable[[str], str], *, at_once: bool) -> None:
        # click goes round a stream whose encoding is ASCII, to the bytes below it.
        encoding = "utf-8" if like.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968") else like.encoding
        super().__init__(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=at_once)
        self._edit = edit

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):  # click recognises a stream of texts by this
            raise TypeError(f"expected str, got {type(text).__name__}")
        super().write(printable(self._edit(text)))
        return len(text)

    def write_bare(self, text: str) -> None:
        """As it is: for texts that were escaped before, with sequences of our own between them."""
        super().write(text)


def _at_once(stream: TextIO) -> bool:
    """Whether to show each line as soon as it is written: on a terminal, and with PYTHONUNBUFFERED."""
    return stream.isatty() or any(getattr(stream, name, False) for name in ("line_buffering", "write_through"))


class _Bare(io.TextIOBase):
    """An `EscapedStream` for the console, which escapes by itself."""

    def __init__(self, stream: EscapedStream) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        self._stream.write_bare(text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


def bare(stream: IO[str]) -> Any:
    """The stream below the escapes, if there are any."""
    return _Bare(stream) if isinstance(stream, EscapedStream) else stream


def rewrite_line(text: str) -> None:
    """Put `text` in place of the terminal's current line, on the standard error."""
    bare(sys.stderr).write(f"\r\x1b[K{printable(text)}")
    sys.stderr.flush()


# ---- descriptor 2, and JSON lines


class _Pump:
    """The small process that writes to the real standard error; it ends when all its writers have ended.

    `stray` takes all other output, `lines` only finished JSON lines of the log; `secrets` are hidden in the stray
    lines, each value as JSON.
    """

    def __init__(self, real: int, *, as_json: bool) -> None:
        self.as_json = as_json
        self._lock = threading.Lock()
        secrets_out, self.secrets = os.pipe()
        stray_out, self.stray = os.pipe()
        lines_out, self.lines = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            stray = _Source(Lines(), _as_json if as_json else _as_text)
            lines, secrets = _Source(Lines(sys.maxsize), _as_it_is), _Source(Lines(sys.maxsize), _hidden_from_now_on)
            describe = _left_out_as_json if as_json else _left_out_as_text
            _be_the_pump({secrets_out: secrets, stray_out: stray, lines_out: lines}, LossyWriter(real, describe), real)
        for descriptor in (secrets_out, stray_out, lines_out):
            os.close(descriptor)

    def log_line(self, line: str) -> None:
        """Write one line of the log; may be called from several threads."""
        with self._lock, suppress(OSError):  # the reader is gone, which must not end a run
            write_all(self.lines, f"{line}\n".encode(errors="backslashreplace"))

    def hide(self, secrets: Iterable[str]) -> None:
        """Hide these values from now on in the stray lines."""
        with suppress(OSError):  # as above
            write_all(self.secrets, "".join(map(_as_it_is, map(json.dumps, secrets))).encode())

    def close(self) -> None:
        """Let it write its pending lines."""
        for descriptor in (self.secrets, self.stray, self.lines):
            os.close(descriptor)
        until = time.monotonic() + _LAST_WORDS_S
        with suppress(ChildProcessError):
            while not os.waitpid(self._pid, os.WNOHANG)[0] and time.monotonic() < until:
                time.sleep(_LOOK_S)


class _Source(NamedTuple):
    """The output of one pipe, and the text written for each of its lines."""

    lines: Lines
    edit: Callable[[str], str]


def _be_the_pump(sources: dict[int, _Source], out: LossyWriter, real: int) -> None:
    """Never returns."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        forbid_dumps()  # it has the environment of the program, with all passwords in it
        _keep_only({*sources, real})
        _pump(sources, out)
    except BrokenPipeError:
        pass  # the reader is gone
    finally:
        os._exit(0)


def _keep_only(wanted: set[int]) -> None:
    """Nobody shall wait for an end of file because of this process."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in {0, 1, 2} - wanted:
        os.dup2(nothing, standard)
    edges = [2, *sorted(number for number in wanted if number > 2), 1 << 16]
    for below, above in pairwise(edges):
        os.closerange(below + 1, above)


def _pump(sources: dict[int, _Source], out: LossyWriter) -> None:
    with selectors.DefaultSelector() as ready:
        for descriptor, source in sources.items():
            ready.register(descriptor, selectors.EVENT_READ, source)
        while ready.get_map():
            come = ready.select(_AGAIN_S if out.owes else None)
            if not come:
                out.write(b"")
            for key, _ in sorted(come, key=lambda found: found[0].data.edit is not _hidden_from_now_on):
                piece, source = os.read(key.fd, _PIECE), key.data
                lines = source.lines.take(piece) if piece else source.lines.last()
                out.write("".join(map(source.edit, lines)).encode())
                if not piece:
                    ready.unregister(key.fd)


def show_problem(
    problem: str, status: int, error_id: str = "", error_ids: Sequence[str] = (), *, is_log: bool = False
) -> None:
    """Say why the program ends with this status. `error_id`: of the kind of error, if it has one.

    `error_ids`: if it is about several mistakes, the kind of each. In JSON they are told always; as text on a terminal,
    where somebody can type the command, and if the standard error is a log (`is_log`), which somebody reads later.
    """
    ids = error_ids or ((error_id,) if error_id else ())
    if writes_json():
        kinds = {"error_id": error_id} if error_id else {}
        several = {"error_ids": " ".join(ids)} if len(ids) > 1 else {}
        _log().error("failed", why=problem, status=status, **kinds, **several)
    else:
        if ids and (is_log or sys.stderr.isatty()):
            problem += f"\n{way_to_explanations(ids)}"
        sys.stderr.write(
            f"{problem}\n"
        )  # click would remove sequences that it knows, and not show that they were there


def way_to_explanations(error_ids: Sequence[str]) -> str:
    """The command that says more, for people."""
    return f"more: camgraph explain {' '.join(error_ids)}"


def _log() -> Any:
    """The log of a process that has none yet, or has: both in JSON. Its import takes longer than --help may."""
    import structlog  # noqa: PLC0415

    from camgraph.pipeline.system.logs import log_to_stderr  # noqa: PLC0415

    if not structlog.is_configured():
        log_to_stderr(as_json=True, sink=log_line)
    return structlog.get_logger()


def _show_bug(bug: Exception) -> None:
    """Its traceback at once, so that no address in it is cut in two before its password is looked for."""
    text = "".join(traceback.format_exception(bug))
    if writes_json():
        _log().critical("crashed", exception=text, error_id=_BUG)
    else:
        sys.stderr.write(text)
        if sys.stderr.isatty():
            sys.stderr.write(f"{way_to_explanations([_BUG])}\n")


def _unchanged(text: str) -> str:
    return text


def _as_it_is(line: str) -> str:
    return f"{line}\n"


def _hidden_from_now_on(line: str) -> str:
    hide([json.loads(line)])
    return ""


def _as_text(line: str) -> str:
    return f"{printable(redact_urls(line))}\n"


def _as_json(line: str) -> str:
    return _as_it_is(_warning(event="stderr", text=redact_urls(line)))


def _warning(**keys: object) -> str:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({**keys, "level": "warning", "timestamp": now})


def _left_out_as_json(lines: int, why: str) -> str:
    return _warning(event="log_left_out", lines=lines, why=why)


def _left_out_as_text(lines: int, why: str) -> str:
    return f"{lines} lines could not be written here: {why}"


# ---- all of it together

_pump_of_this_process: _Pump | None = None


def writes_json() -> bool:
    """True if each line on the standard error is to be a JSON object."""
    return _pump_of_this_process is not None and _pump_of_this_process.as_json


def log_line(line: str) -> None:
    """Write one line of a log in JSON to the standard error."""
    if _pump_of_this_process is None:
        click.echo(line, err=True)
    else:
        _pump_of_this_process.log_line(line)


def hide_in_words_of_libraries(secrets: Iterable[str]) -> None:
    """Hide these values also in the output of native libraries; `pipeline.system.redaction` does all else."""
    if _pump_of_this_process is not None:
        _pump_of_this_process.hide(secrets)


@contextmanager
def guarded(*, as_json: bool = False) -> Iterator[None]:
    """Let nothing round this module, from here to the end of the process."""
    _open_closed_streams()
    before = sys.stdout, sys.stderr
    with _descriptor_2_guarded(as_json=as_json) as real:
        sys.stdout = EscapedStream(WaitingFile(1), sys.stdout, _unchanged, at_once=_at_once(sys.stdout))
        sys.stderr = EscapedStream(LossyFile(real, _left_out_as_text), sys.stderr, redact_urls, at_once=True)
        # Rich asks this one how wide the terminal is; it is no pipe.
        setattr(sys, "__stderr__", sys.stderr)  # noqa: B010 - final to type checkers
        try:
            yield
        except OutputProblem as problem:
            show_problem(f"the standard output cannot be written: {problem.strerror}", EXIT_ENVIRONMENT, "cannot-write")
            raise SystemExit(EXIT_ENVIRONMENT) from None
        except Exception as bug:  # noqa: BLE001 - reported here, while the screen can still show it
            _show_bug(bug)
            raise SystemExit(EXIT_GAVE_UP) from None
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):
                    stream.flush()
            sys.stdout, sys.stderr = before


def _open_closed_streams() -> None:
    """Connect standard streams that the caller has closed (`>&-`) with nothing.

    Python has no objects for them, and the next file or socket that is opened would get their numbers, and our output.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            _open_nothing(descriptor)
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _open_nothing(descriptor: int) -> None:
    """Unless it is in use by now: a library may have opened something before."""
    try:
        os.fstat(descriptor)
    except OSError:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, descriptor)
        if nothing != descriptor:
            os.close(nothing)
        os.set_inheritable(descriptor, True)  # the processes of a run have standard streams as well


@contextmanager
def _descriptor_2_guarded(*, as_json: bool) -> Iterator[int]:
    """The place of our own standard error meanwhile."""
    global _pump_of_this_process  # noqa: PLW0603 - a process has one standard error
    pump = real = None
    with suppress(OSError, AttributeError):  # no fork here, or no descriptors: as it is, then
        real = os.dup(2)
        pump = _Pump(real, as_json=as_json)
    if real is None or pump is None:
        yield 2
        return
    os.dup2(pump.stray, 2)
    _pump_of_this_process = pump
    try:
        yield 2 if as_json else real
    finally:
        _pump_of_this_process = None
        os.dup2(real, 2)
        pump.close()
