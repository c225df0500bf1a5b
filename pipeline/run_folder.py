"""The folder of one running graph: its sockets, its lock, what its stages keep while it runs.

<runs_folder>/<name>/
    lock        held (flock) by the supervisor for life: a folder that nobody locks is left over
    control     the control socket
    <pid>/      what its processes make, by the supervisor's id: late ones of a killed run never touch the next run's
        <n>.<i>     the socket of process n in its incarnation i
        state/      a folder for each stage
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from pipeline.disk import try_lock
from pipeline.errors import EnvironmentProblem, UserError
from pipeline.names import A_NAME, is_name
from pipeline.paths import runs_folder

_SWEEP_S = 0.5


class RunFolder:
    """Made for one run, and removed at its end."""

    def __init__(self, name: str) -> None:
        if not is_name(name):
            raise UserError(f"a run cannot be called {name!r}: expected {A_NAME}; choose another: --name")
        self.name = name
        root = runs_folder()
        _make_private(root)
        sweep_runs(root)
        self.path = root / name
        try:
            self._lock = _claim(self.path)
        except OSError as error:
            raise EnvironmentProblem(f"the folder of the run, {self.path}, cannot be made: {error.strerror}") from None
        if self._lock < 0:
            raise UserError(f"a run called {name} is going on: stop it (camgraph stop --name {name}) or choose --name")
        _empty(self.path)
        self.own = self.path / str(os.getpid())
        """For the processes of this run alone."""
        self.own.mkdir(mode=0o700)

    @property
    def control(self) -> str:
        """The address of the control socket."""
        return f"ipc://{self.path}/control"

    def endpoint(self, number: int, incarnation: int) -> str:
        """The address of a process's socket. Short: an ipc address ends at 107 characters."""
        return f"ipc://{self.own}/{number}.{incarnation}"

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def unlink_socket(address: str) -> None:
    """Remove the file of a socket, given its address; one that is gone, or has no file, is fine."""
    with contextlib.suppress(OSError):
        Path(address.removeprefix("ipc://")).unlink()


def running() -> list[str]:
    """The names of this user's runs that are going on."""
    return [path.name for path in _folders(runs_folder()) if (path / "lock").exists() and not _is_left_over(path)]


def has_control(name: str) -> bool:
    """False for a run that only keeps its name to itself, and cannot be asked."""
    return (runs_folder() / name / "control").exists()


def sweep_runs(root: Path) -> None:
    """Remove the folders whose supervisor is dead."""
    for path in _folders(root):
        remove_left_over(path)


def remove_run_of(own: Path) -> None:
    """As `remove_left_over`, for a process that knows its run by the folder of the run's processes."""
    remove_left_over(own.parent)


def remove_left_over(path: Path) -> None:
    """Remove a run's folder, unless a supervisor holds its lock: then it belongs to a new run.

    A child that is late may have put its state into a folder whose lock was removed already: that one goes as well.
    """
    fd = _lock(path / "lock", make=True)
    if fd >= 0:
        if _is_at(fd, path / "lock"):  # else a run that ended meanwhile had it, and the next one may be here already
            shutil.rmtree(path, ignore_errors=True)
        os.close(fd)


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def _is_left_over(path: Path) -> bool:
    fd = _lock(path / "lock", make=False)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def _claim(folder: Path) -> int:
    """Make the folder and lock it; -1 when a run has it.

    Another run that starts now may be sweeping it, for it was left over: then it is locked for a moment, and gone.
    """
    until = time.monotonic() + _SWEEP_S
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        fd = _lock(folder / "lock", make=True)
        if fd >= 0 and _is_at(fd, folder / "lock"):
            return fd
        if fd >= 0:
            os.close(fd)
        elif time.monotonic() > until:
            return -1
        time.sleep(0.01)


def _empty(folder: Path) -> None:
    """What a dead run's stages remembered would make this run's take themselves for restarted ones."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != "lock":
            path.unlink(missing_ok=True)


def _is_at(fd: int, path: Path) -> bool:
    try:
        return path.stat().st_ino == os.fstat(fd).st_ino
    except FileNotFoundError:
        return False


def _lock(path: Path, *, make: bool) -> int:
    """An open descriptor that holds the lock, or -1 when someone else does, or there is none."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o600)
    except FileNotFoundError:  # none of ours, being made, or just removed
        return -1
    if not try_lock(fd):
        os.close(fd)
        return -1
    return fd


def _make_private(root: Path) -> None:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = root.lstat()
    except OSError as error:
        raise EnvironmentProblem(f"the folder for sockets, {root}, cannot be made: {error.strerror}") from None
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or root.is_symlink():
        raise EnvironmentProblem(
            f"{root} must be a folder of yours with mode 0700, for it holds the sockets of your runs; "
            f"it has mode {found.st_mode & 0o777:04o} and owner {found.st_uid}: remove it or set XDG_RUNTIME_DIR"
        )
