"""The folder of one running graph: its sockets, its lock, and the files of its stages while it runs.

<runs_folder>/<name>/
    lock        held (flock) by the supervisor for life: a folder without a lock is left over
    camgraph.control    the control socket; by this name a run is found from everywhere on the machine
    graph       the folder of its graph and the graph file, if there is one, with a zero byte between
    <pid>/      what its processes make, by the supervisor's id: late ones of a killed run never touch the next run's
        <n>.<i>     the socket of process n in its incarnation i
        state/      a folder for each stage
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

import structlog

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.disk import is_at, open_locked, open_regular, try_lock
from camgraph.pipeline.system.names import A_NAME, is_name
from camgraph.pipeline.system.paths import RUN_DIR, TEMPORARY, other_runs_folders, runs_folder

CONTROL = "camgraph.control"
"""The name of a run's control socket."""
_GRAPH = "graph"
_SWEEP_S = 0.5


class RunFolder:
    """Made for one run, and removed at its end.

    `graph_folder` and `graph_file`: where its graph is, as absolute paths; "" if that is not known.
    """

    def __init__(self, name: str, graph_folder: str = "", graph_file: str = "") -> None:
        if not is_name(name):
            raise UserError(
                f"a run cannot be called {name!r}: expected {A_NAME}; choose another: --name",
                error_id="name-not-allowed",
            )
        self.name = name
        root = _private_folder()
        sweep_runs(root)
        self.path = root / name
        self.own = self.path / str(os.getpid())
        """For the processes of this run alone."""
        self._lock = -1
        try:
            self._lock = _claim(self.path)
            if self._lock < 0:
                raise going_on(name)
            _empty(self.path)
            self.own.mkdir(mode=0o700)
            if graph_folder:
                (self.path / _GRAPH).write_bytes(b"\0".join(map(os.fsencode, (graph_folder, graph_file))))
        except OSError as error:
            if self._lock >= 0:
                self.close()
            raise EnvironmentProblem(
                f"the folder of the run, {self.path}, cannot be made: {error.strerror}", error_id="folders-of-user"
            ) from None

    @property
    def control(self) -> Path:
        """The path of the control socket."""
        return self.path / CONTROL

    def endpoint(self, number: int, incarnation: int) -> str:
        """The address of a process's socket. Short: an ipc address ends at 107 characters."""
        return f"ipc://{self.own}/{number}.{incarnation}"

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def graph_of(folder: Path) -> tuple[str, str]:
    """The folder of the graph and the graph file of the run in `folder`, "" for what is not known."""
    try:
        graph_folder, _, graph_file = (folder / _GRAPH).read_bytes().partition(b"\0")
    except OSError:  # a run of an earlier camgraph, or one that has just ended
        return "", ""
    return os.fsdecode(graph_folder), os.fsdecode(graph_file)


def unlink_socket(address: str) -> None:
    """Remove the file of a socket, given its address; one that is gone, or has no file, is fine."""
    with contextlib.suppress(OSError):
        Path(address.removeprefix("ipc://")).unlink()


def going_on(name: str, where: str = "") -> UserError:
    """The error for a user who starts a run of this name while there is one; `where` it is, if not here."""
    return UserError(
        f"a run called {name} is going on{where}: stop it (camgraph stop --name {name}) or choose --name",
        error_id="run-name-taken",
    )


def running(root: Path) -> list[str]:
    """The names of the runs in this folder that are going on; none if it belongs to another user."""
    if not is_private(root):
        return []
    return [path.name for path in _folders(root) if is_going_on(path)]


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
    try:
        fd = _lock(path / "lock")
    except OSError as error:  # a run of root, in a folder that both use
        structlog.get_logger().warning("run_folder_not_swept", folder=str(path), why=error.strerror)
        return
    if fd >= 0:
        if is_at(fd, path / "lock"):  # else a run that ended meanwhile had it, and the next one may be here already
            shutil.rmtree(path, ignore_errors=True)
        os.close(fd)


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def is_going_on(folder: Path) -> bool:
    """Whether a run of this user has the lock of this folder."""
    try:
        fd = open_regular(folder / "lock", os.O_RDWR)
    except OSError:  # there is none, or it is another user's
        return False
    try:
        return not try_lock(fd)
    except OSError:  # its file system has no locks, so no run could begin there
        return False
    finally:
        os.close(fd)


def _claim(folder: Path) -> int:
    """Make the folder and lock it; -1 when a run has it.

    Another run that is starting may be sweeping it as left over: then it is locked for a moment, and gone.
    """
    until = time.monotonic() + _SWEEP_S
    while True:
        _make(folder)
        fd = _lock(folder / "lock")
        if fd >= 0 and is_at(fd, folder / "lock"):
            return fd
        if fd >= 0:
            os.close(fd)
        elif time.monotonic() > until:
            return -1
        time.sleep(0.01)


def _make(folder: Path) -> None:
    """Unless it is there. `Path.mkdir(exist_ok=True)` fails if another run removes it between its two looks."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        with contextlib.suppress(FileNotFoundError):  # gone meanwhile: `_claim` tries again
            if not stat.S_ISDIR(folder.stat().st_mode):
                raise


def _empty(folder: Path) -> None:
    """State of a dead run's stages would make the stages of this run take themselves for restarted ones."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != "lock":
            path.unlink(missing_ok=True)


def _lock(path: Path) -> int:
    """An open descriptor that holds the lock, or -1 when someone else does, or there is none."""
    try:
        return open_locked(path)
    except FileNotFoundError:  # none of ours, being made, or just removed
        return -1


def _private_folder() -> Path:
    """The folder for this user's runs; another one if another user has made the usual one in /tmp."""
    root = runs_folder()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = root.lstat()
    except OSError as error:
        if root.parent != TEMPORARY or not os.path.lexists(root):
            raise EnvironmentProblem(
                f"the folder for sockets, {root}, cannot be made: {error.strerror}: set {RUN_DIR} to another one",
                error_id="folders-of-user",
            ) from None
        found = root.lstat()
    if is_private(root):
        return root
    if root.parent == TEMPORARY and found.st_uid != os.getuid():
        return _another_folder(root, found.st_uid)
    raise EnvironmentProblem(
        f"{root} must be a folder of yours with mode 0700, for it holds the sockets of your runs; "
        f"it has mode {found.st_mode & 0o777:04o} and owner {found.st_uid}: remove it or set {RUN_DIR}",
        error_id="folders-of-user",
    )


def _another_folder(usual: Path, owner: int) -> Path:
    """Everybody may write in /tmp, so a name that is known beforehand may be taken: then it is a random one."""
    others = (path for path in other_runs_folders() if path.parent == TEMPORARY and is_private(path))
    try:
        found = next(others, None) or Path(tempfile.mkdtemp(prefix=f"{usual.name}-", dir=TEMPORARY))
    except OSError as error:
        raise EnvironmentProblem(
            f"a folder for sockets cannot be made in {TEMPORARY}: {error.strerror}: set {RUN_DIR} to another one",
            error_id="folders-of-user",
        ) from None
    structlog.get_logger().warning("run_folder_taken_by_others", folder=str(usual), owner=owner, instead=str(found))
    return found


def is_private(root: Path) -> bool:
    """Whether it is a folder of this user that no other user can enter."""
    try:
        found = root.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
