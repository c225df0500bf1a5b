"""Asks another process about files (`stages.video.examination`), with limits of time, memory and descriptors.

That process is started with the first question and asked all others that follow soon: starting one takes longer than
looking at a file. One that does not answer in time is ended, and the next question goes to another.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from math import inf, prod
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from camgraph.pipeline.system.child_environment import handed_on
from camgraph.stages.video.examination import Answer, Question, answer, is_readable
from camgraph.stages.video.pixels import U8

ANSWER_S = 30.0
"""For one file, on a machine that is busy; a whole one takes milliseconds."""
PASSING_S = 10.0
"""As long as one look at a graph, which asks for a file several times, may go on behind an answer."""
_END_S = 2.0
_MOST_REMEMBERED = 1024
_MOST_HEAD = 1 << 20
_ANSWER = TypeAdapter(Answer)


class Examiner:
    """One process at a time; used by any thread.

    If the machine has no memory for a process, nothing is known of a file: reading it will report the shortage. If
    processes have no such limits (Windows), this one looks at the file.
    """

    def __init__(self, answer_s: float = ANSWER_S) -> None:
        self._answer_s = answer_s
        self._process: subprocess.Popen[bytes] | None = None
        self._dying: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def examine(self, path: Path, *, playlist: bool, memory_mb: int) -> Answer:
        """The problem with a file, and the size of its frames."""
        return self._asked(Question(_absolute(path), playlist, memory_mb))[0]

    def frames(self, path: Path, count: int, memory_mb: int) -> list[U8]:
        """As `stages.video.examination.some_frames`; none if the file cannot be read within the limits."""
        return self._asked(Question(_absolute(path), False, memory_mb, count))[1]

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _asked(self, question: Question) -> tuple[Answer, list[U8]]:
        if not hasattr(os, "fork"):
            given, frames = answer(question)
            return given, list(frames)
        with self._lock:
            used = self._process is not None
            try:
                process = self._running()
            except OSError:
                return Answer(passing=True), []
            try:
                return self._answered(process, question)
            except TimeoutError:
                self._end()
                return Answer(refused=_too_long(question, self._answer_s), passing=True), []
            except (OSError, EOFError, ValueError):
                self._end()
        # One that was there already may have ended for want of questions, just now.
        return self._asked(question) if used else (Answer(refused=_broken(question), passing=True), [])

    def _answered(self, process: subprocess.Popen[bytes], question: Question) -> tuple[Answer, list[U8]]:
        """Raises TimeoutError, and EOFError if the process ended before it had answered."""
        until = time.monotonic() + self._answer_s
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asdict(question)).encode() + b"\n")
        process.stdin.flush()
        received = _Received(process.stdout.fileno(), until)
        given = _checked(_ANSWER.validate_json(received.line(_MOST_HEAD)), question)
        frames = [received.frame(shape) for shape in given.shapes]
        if given.last or given.too_much_memory:
            self._end()
        return (Answer(refused=_too_large(question), passing=True), []) if given.too_much_memory else (given, frames)

    def _running(self) -> subprocess.Popen[bytes]:
        """The process, or another if it has ended: it ends by itself if it is asked nothing."""
        if self._process is not None and not _is_ready(self._process):
            self._end()
        if self._process is None:
            self._process = _executed()
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # input that it did not take any more
                assert pipe is not None
                pipe.close()
        self._dying.append(process)
        with contextlib.suppress(subprocess.TimeoutExpired):  # while its disk does not answer, it cannot die
            process.wait(_END_S)
        self._dying = [one for one in self._dying if one.poll() is None]


class _Received:
    """Read from a descriptor, until a time of the monotonic clock. Raises TimeoutError, EOFError."""

    def __init__(self, descriptor: int, until: float) -> None:
        self._descriptor = descriptor
        self._until = until
        self._rest = b""

    def line(self, most: int) -> bytes:
        while b"\n" not in self._rest:
            if len(self._rest) > most:
                raise ValueError("an answer without an end")
            self._rest += self._more()
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def frame(self, shape: tuple[int, ...]) -> U8:
        size = prod(shape)
        parts = [self._rest]
        have = len(self._rest)
        while have < size:
            parts.append(self._more())
            have += len(parts[-1])
        data = b"".join(parts)
        self._rest = data[size:]
        return np.frombuffer(data[:size], np.uint8).reshape(shape)

    def _more(self) -> bytes:
        if not is_readable(self._descriptor, self._until - time.monotonic()):
            raise TimeoutError
        data = os.read(self._descriptor, 1 << 20)
        if not data:
            raise EOFError
        return data


def _executed() -> subprocess.Popen[bytes]:
    """Raises OSError."""
    return subprocess.Popen(
        # -P: files in the working directory are no modules, whatever their names.
        [sys.executable, "-P", "-m", "camgraph.stages.video.examination"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**handed_on(os.environ), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        # Ctrl-C goes to all of a terminal's group; this one ends with its input.
        process_group=0,
    )


def _is_ready(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process is alive, and has sent nothing without a question."""
    assert process.stdout is not None
    return process.poll() is None and not is_readable(process.stdout.fileno(), 0)


def _checked(given: Answer, question: Question) -> Answer:
    """An attacker who has broken out of FFmpeg may answer anything. Raises ValueError."""
    sides = [side for shape in (*given.shapes, given.frame_size or ()) for side in shape]
    if (
        len(given.shapes) > question.frames
        or any(len(shape) != 3 for shape in given.shapes)
        or min(sides, default=1) < 1
    ):
        raise ValueError("frames that were not requested, or without a size")
    if sum(map(prod, given.shapes)) > question.memory_mb << 20 or (given.frame_bytes or 0) < 0:
        raise ValueError("frames of more bytes than it could have had")
    return given


def _absolute(path: Path) -> str:
    return str(path.absolute())


def _too_long(question: Question, answer_s: float) -> str:
    return f"{question.path}: FFmpeg had not opened it after {answer_s:g} s; expected a video or a picture"


def _too_large(question: Question) -> str:
    return (
        f"{question.path}: too much memory: FFmpeg wants more than {question.memory_mb} MB for it (memory_mb); "
        "expected a video or a picture of at most that"
    )


def _broken(question: Question) -> str:
    return f"{question.path}: FFmpeg breaks over it; expected a video or a picture that can be read"


class Remembered:
    """Answers of an examiner, so that a file that stays as it is is not looked at again. Used by any thread.

    Files that were read, and files of a refused kind, are remembered. An answer that may change is believed for
    `PASSING_S`: that reading failed, took too long or ended the process, an answer without a process, and any answer
    about a playlist or a folder, because files in it may change.
    """

    def __init__(self, examiner: Examiner, clock: Callable[[], float] = time.monotonic) -> None:
        self._examiner = examiner
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: dict[tuple[object, ...], tuple[Answer, float]] = {}

    def examine(self, path: Path, *, playlist: bool, memory_mb: int) -> Answer:
        """As `Examiner.examine`."""
        key = (path.absolute(), _version(path), playlist, memory_mb)
        with self._lock:
            known, until_s = self._answers.get(key, (None, 0.0))
        if known is not None and self._clock() < until_s:
            return known
        found = self._examiner.examine(path, playlist=playlist, memory_mb=memory_mb)
        lasts = not playlist and path.is_file() and not found.passing
        lasts = lasts and (found.frame_bytes is not None or found.refused != "")
        with self._lock:
            self._answers.pop(key, None)
            self._answers[key] = found, inf if lasts else self._clock() + PASSING_S
            if len(self._answers) > _MOST_REMEMBERED:
                del self._answers[next(iter(self._answers))]
        return found


_EXAMINER = Examiner()
_REMEMBERED = Remembered(_EXAMINER)
atexit.register(_EXAMINER.close)


def examine(path: Path, *, playlist: bool, memory_mb: int) -> Answer:
    """As `Examiner.examine`, by a process that all of this program share, and remembered."""
    return _REMEMBERED.examine(path, playlist=playlist, memory_mb=memory_mb)


def frames(path: Path, count: int, memory_mb: int) -> list[U8]:
    """As `Examiner.frames`, by that process."""
    return _EXAMINER.frames(path, count, memory_mb)


def _version(path: Path) -> tuple[int, ...]:
    """The identity of a file: another one of the same name, or the same after a change, differs in it."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
