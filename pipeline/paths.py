"""Where things lie: the XDG folders, and what a path in a graph file means.

$XDG_CACHE_HOME/camgraph/assets/    pulled models and clips, named in graphs as `asset:NAME`
$XDG_STATE_HOME/camgraph/<run>/     what must outlive a run: the outbox
$XDG_RUNTIME_DIR/camgraph/<run>/    sockets of a run (mode 0700); /tmp/camgraph-<uid>/<run>/ without one
/dev/shm/camgraph-<uid>-<run>-*     pixels of a run
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from pipeline.errors import EnvironmentProblem, UserError

ASSET_PREFIX = "asset:"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - names in it are checked, and files are 0600
_OTHERS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else Path.home() / default


def asset_folder() -> Path:
    """The folder of pulled assets; it may not exist yet."""
    return _xdg("XDG_CACHE_HOME", ".cache") / "camgraph" / "assets"


def state_folder(run: str) -> Path:
    """What a run of this name leaves to the next one; it may not exist yet."""
    return _xdg("XDG_STATE_HOME", ".local/state") / "camgraph" / run


def runs_folder() -> Path:
    """The folder of all running graphs of this user; it may not exist yet."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    # An ipc address ends at 107 characters: a deep runtime folder is no use.
    if runtime.startswith("/") and len(runtime) <= 40 and Path(runtime).is_dir():
        return Path(runtime) / "camgraph"
    if not hasattr(os, "getuid"):  # Windows has a temporary folder for each user
        return Path(tempfile.gettempdir()) / "camgraph"
    return Path("/tmp") / f"camgraph-{os.getuid()}"  # noqa: S108 - made with mode 0700 and checked by the run


def resolve(text: str, base_folder: Path) -> Path:
    """A path as a graph file writes it: `asset:NAME`, absolute, `~/...`, or relative to the graph file's folder."""
    if text.startswith(ASSET_PREFIX):
        return asset_folder() / text.removeprefix(ASSET_PREFIX)
    path = Path(text).expanduser()
    return path if path.is_absolute() else base_folder / path


def instead_of_file(path: Path) -> str:
    """What is there in the place of a file that could be read ("a pipe"); "" for a file, and where nothing is found.

    To ask before opening: opening a pipe waits for somebody to write into it, and reading a device may never end.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISREG(mode) else _OTHERS.get(stat.S_IFMT(mode), "no file")


def resolve_output(text: str, base_folder: Path) -> Path:
    """Where an output goes, as `resolve` says; the missing folders of a relative path are made.

    A relative path lies beside the graph and means a new folder. A missing absolute folder more likely is a mistyped
    one, or a disk that is not mounted, whose place on the system's own disk must not be filled. Raises UserError or
    EnvironmentProblem.
    """
    if text.startswith(ASSET_PREFIX):
        raise UserError(f"{text}: assets are only read; give a path to write to")
    path = resolve(text, base_folder)
    try:
        if path.is_dir():
            raise UserError(f"{path}: is a folder, expected a file; add a file name")
        if not Path(text).expanduser().is_absolute():
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentProblem(f"{path.parent}: cannot use this folder for {path.name}: {error.strerror}") from error
    if not path.parent.is_dir():
        raise UserError(f"{path.parent}: no such folder; make it, mount its disk, or name another path")
    return path
