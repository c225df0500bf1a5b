"""The folder of a run's outbox: whether it can be used, and that only one run uses it.

    <state>/<run>/lock             locked (flock) by the run, wherever it was started; names that run
                  outbox.sqlite    and SQLite's files beside it
                  outbox.sqlite-reserve    room for deleting events, see `pipeline.outbox.disk_reserve`
                  dead_letters/    events that sinks have given up, see `pipeline.dead_letters`

Events may be about people, so the folder has mode 0700, and belongs to the user whose run it is.

A run that was killed leaves its folder. The next run of that name goes on with it. There may never be one (`camgraph
watch` has a folder for each events file), so the next run of any name removes the folders without pending events and
dead letters.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from camgraph.pipeline.dead_letters import DeadLetters, LetterCount, sinks_with_letters
from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.outbox.event_file import SUFFIXES, remove_delivered, remove_unused
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.system.disk import HAS_LOCKS, is_at, kind_of, open_locked
from camgraph.pipeline.system.names import user_name
from camgraph.pipeline.system.paths import STATE_DIR

_OUTBOX = "outbox"
_LOCK = "lock"
_FILES = tuple(f"outbox.sqlite{suffix}" for suffix in SUFFIXES)
_WAIT_S = 0.5
_SWEEP_S = 1.0
_LONGEST = 500
_ROOT = 0


def outbox_folder(plan: RunPlan) -> Path | None:
    """The folder of this plan's outbox, None if it has none."""
    stages = (stage for process in plan.processes for stage in process.stages)
    return next((Path(str(stage.settings["path"])).parent for stage in stages if stage.use == _OUTBOX), None)


def why_unusable(folder: Path) -> str:
    """Why the outbox cannot be kept there, with a way out; "" if it can. Leaves nothing behind."""
    return _reason_of_folder(folder) or next(filter(None, map(_reason_of_file, _files(folder))), "")


def _with_way_out(
    reason: str, way_out: str = "give this user the folder (chown, chmod), start the run as its owner"
) -> str:
    return f"{reason}; events are kept there until they are delivered: {way_out}, or set {STATE_DIR} to another folder"


_MOVE = "move it away"


@contextmanager
def outbox_held(plan: RunPlan) -> Iterator[None]:
    """Lock the outbox of this plan for one run.

    Raises UserError if another run has it, and EnvironmentProblem if its folder cannot be used.
    """
    folder = outbox_folder(plan)
    if folder is None or not HAS_LOCKS:
        yield
        return
    reason = _lasting_reason(folder)
    if reason:
        raise EnvironmentProblem(reason, error_id="outbox-disk")
    lock = folder / _LOCK
    try:
        descriptor = _taken(lock)
    except OSError as error:
        raise EnvironmentProblem(
            _with_way_out(f"{lock}: cannot be used: {error.strerror}"), error_id="outbox-disk"
        ) from None
    if descriptor < 0:
        raise UserError(
            f"the outbox in {folder} is in use by another run{_holder(lock)}: "
            f"stop that one, choose --name, or set {STATE_DIR} to another folder",
            error_id="run-name-taken",
        )
    try:
        with suppress(OSError):  # the text in the lock is only for people
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{plan.graph}, process {os.getpid()}".encode())
        _sweep(folder.parent)
        yield
    finally:
        _name_dead_letters(folder)
        with suppress(OSError, sqlite3.Error):  # it is damaged, or a process that cannot be ended has it
            _remove_unused(folder)
        with suppress(OSError):
            lock.unlink()
            folder.rmdir()  # if it is empty
        os.close(descriptor)


def _remove_unused(folder: Path) -> None:
    """Remove a file that never had an event. `watch` has a folder for each events file: they would pile up."""
    file, *beside = _files(folder)
    if file.exists() and remove_unused(file):
        for path in beside:
            path.unlink(missing_ok=True)


def _name_dead_letters(folder: Path) -> None:
    """Log the sinks that have given up events, in this run or before: somebody should look at them."""
    for sink in sinks_with_letters(folder):
        letters = DeadLetters(folder, sink)
        count = LetterCount(letters).now()
        structlog.get_logger().warning("dead_letters_kept", sink=sink, letters=count, kept_in=str(letters.path))


def _lasting_reason(folder: Path) -> str:
    """As `why_unusable`, without passing problems: a run that has just ended may be removing the folder."""
    until = time.monotonic() + _WAIT_S
    while (reason := why_unusable(folder)) and time.monotonic() < until:
        time.sleep(0.01)
    return reason


def _taken(lock: Path) -> int:
    """Return the locked descriptor; -1 if another run has the lock. A run that has just ended may be removing it."""
    until = time.monotonic() + _WAIT_S
    while True:
        with suppress(FileNotFoundError, FileExistsError):
            lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = open_locked(lock)
            if descriptor >= 0 and is_at(descriptor, lock):
                return descriptor
            if descriptor >= 0:
                os.close(descriptor)
        if time.monotonic() > until:
            return -1
        time.sleep(0.01)


def _holder(lock: Path) -> str:
    """Name the run that has the lock, from the text in it."""
    try:
        text = lock.read_bytes()[:_LONGEST].decode(errors="replace")
    except OSError:
        return ""
    return f" ({text})" if text.isprintable() and text else ""


# ---- outboxes of killed runs


def _sweep(root: Path) -> None:
    """Remove the folders of dead runs without pending events; the rest of them at another time, if it takes long."""
    until = time.monotonic() + _SWEEP_S
    with suppress(OSError):
        for folder in sorted(root.iterdir()):
            with suppress(OSError):
                _remove_left_over(folder)
            if time.monotonic() > until:
                return


def _remove_left_over(folder: Path) -> None:
    """Remove a folder, unless a run has it, an event in it is pending, or it contains other files. Raises OSError."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or not _is_own(found):
        return
    names = {path.name for path in folder.iterdir()}
    if _LOCK not in names or not names <= {_LOCK, *_FILES}:
        return
    lock = folder / _LOCK
    descriptor = open_locked(lock)
    if descriptor < 0:
        return
    try:
        if not is_at(descriptor, lock) or not _is_delivered(folder / _FILES[0]):
            return
        for path in _files(folder):
            path.unlink(missing_ok=True)
        lock.unlink()
        folder.rmdir()
        structlog.get_logger().info("left_over_outbox_removed", folder=str(folder))
    finally:
        os.close(descriptor)


def _is_delivered(path: Path) -> bool:
    """Whether no event is pending there: the file is removed then."""
    try:
        return not path.exists() or remove_delivered(path)
    except sqlite3.Error:  # in use, or damaged: starting the run of that name reports it
        return False


# ---- checking the folder


def _files(folder: Path) -> list[Path]:
    return [folder / name for name in _FILES]


def _reason_of_folder(folder: Path) -> str:
    """Return why no file can be made in this folder, or the folder cannot be made itself."""
    for place in (folder, *folder.parents):
        try:
            found = place.stat()
        except (FileNotFoundError, NotADirectoryError):  # to be made, or another run has just removed it
            continue
        except OSError as error:
            return _with_way_out(f"the state folder {place} cannot be used: {error.strerror}")
        return _reason(place, found, shared=place != folder)
    return ""


def _reason(place: Path, found: os.stat_result, *, shared: bool) -> str:
    """Return why no file can be made in an existing folder. In a `shared` one others cannot remove our files."""
    if not stat.S_ISDIR(found.st_mode):
        reason = f"{place} is {kind_of(found.st_mode) or 'a file'}, expected a folder for the state of runs"
        return _with_way_out(reason, _MOVE)
    if not _is_own(found) and found.st_uid != _ROOT and not (shared and found.st_mode & stat.S_ISVTX):
        return _with_way_out(f"the state folder {place} belongs to {user_name(found.st_uid)}")
    if not os.access(place, os.W_OK | os.X_OK):
        return _with_way_out(f"the state folder {place} cannot be written{_of_whom(found)}")
    return ""


def _reason_of_file(path: Path) -> str:
    try:
        found = path.lstat()
    except OSError:
        return ""
    if not stat.S_ISREG(found.st_mode):
        return _with_way_out(f"{path} is {kind_of(found.st_mode)}, expected the file of the outbox", _MOVE)
    if not os.access(path, os.R_OK | os.W_OK):
        return _with_way_out(f"the outbox {path} cannot be written{_of_whom(found)}")
    return ""


def _is_own(found: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or found.st_uid == os.getuid()  # Windows has no such numbers


def _of_whom(found: os.stat_result) -> str:
    return "" if _is_own(found) else f" (it belongs to {user_name(found.st_uid)})"
