"""Finds the runs on this machine, of all users and in all folders, and the graph files of a folder.

A run is known by the run's control socket, `<folder>/<run>/camgraph.control`. Linux shows every user the addresses of
all listening sockets, including sockets in folders of other users. A run in one process has no socket. Such a run is
found by the run's lock, in the folders where runs of this user usually are.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from camgraph.pipeline.system.disk import open_regular
from camgraph.pipeline.system.names import is_name, own_user, user_name
from camgraph.pipeline.system.paths import chosen_runs_folder, other_runs_folders, runs_folder
from camgraph.pipeline.system.run_folder import CONTROL, going_on, graph_of, is_going_on, running

_LISTENING = 0x10000
_ROOT = 0
_SOCKETS = Path("/proc/net/unix")
# Num RefCount Protocol Flags Type St Inode Path: "0000000000000000: 00000002 00000000 00010000 0001 01 83027 /run/x"
_LINE = re.compile(
    rb"[0-9A-Fa-f]+: [0-9A-Fa-f]+ [0-9A-Fa-f]+ (?P<flags>[0-9A-Fa-f]+) [0-9A-Fa-f]+ [0-9A-Fa-f]+ +[0-9]+ "
    rb"(?P<path>/[^\x00-\x1f\x7f]*)"
)
_MOST_FILES, _MOST_OF_FILE = 50, 1 << 20
_STAGES, _OURS = (re.compile(text, re.MULTILINE) for text in (rb"^stages\s*:", rb"^(version|cameras)\s*:"))
"""What graph files have, and no other YAML files of camgraph. Other programs have files with `stages` as well."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run that goes on. `owner`: the user's number; `here`: the run is where this process would start runs."""

    name: str
    folder: Path
    owner: int
    here: bool

    @property
    def graph_file(self) -> str:
        """The graph file of the run; "" for a run without a file, and for a run of another user."""
        return graph_of(self.folder)[1] if self.own else ""

    def is_of(self, folder: Path) -> bool:
        """Whether the graph of the run is in this folder."""
        graph_folder = graph_of(self.folder)[0] if self.own else ""
        return bool(graph_folder) and os.path.realpath(graph_folder) == os.path.realpath(folder)

    @property
    def own(self) -> bool:
        """True for a run of this user."""
        return self.owner == own_user()

    @property
    def answers(self) -> bool:
        """Whether the run can be asked; False for a run in one process, which only holds its name."""
        return (self.folder / CONTROL).exists()

    @property
    def where(self) -> str:
        """The user and the folder of the run, for people."""
        return f"in {self.folder}" if self.own else f"of {user_name(self.owner)}"


def current_folder() -> Path | None:
    """The folder that this process is in; None if somebody has removed the folder."""
    try:
        return Path.cwd()
    except OSError:
        return None


def graphs_in(folder: Path) -> list[Path]:
    """The graph files that lie in a folder, by name. Only the first 50 YAML files are looked at."""
    files = [path for path in sorted(folder.glob("*.y*ml")) if not path.name.startswith(".")]
    return [path for path in files[:_MOST_FILES] if _is_graph(path)]


def _is_graph(path: Path) -> bool:
    try:
        with open(open_regular(path, os.O_RDONLY), "rb") as file:  # noqa: PTH123 - it is open already
            text = file.read(_MOST_OF_FILE)
        return bool(_STAGES.search(text) and _OURS.search(text))
    except OSError:
        return False


def found_runs() -> list[FoundRun]:
    """All runs; runs in the folder of this process come first, and are the only ones if the user chose that folder.

    Raises UserError.
    """
    here = runs_folder()
    found = [FoundRun(name, here / name, own_user(), here=True) for name in running(here)]
    if chosen_runs_folder():
        return found
    for root in other_runs_folders():
        found += [FoundRun(name, root / name, own_user(), here=False) for name in running(root) if root != here]
    known = {run.folder for run in found}
    for address in _listened_on():
        folder = address.parent
        if address.name == CONTROL and is_name(folder.name) and folder not in known:
            owner = _owner(address)
            # The table may be wrong (see `_listened_on`); the lock says whether a run of this user goes on.
            if owner is not None and (owner != own_user() or is_going_on(folder)):
                found.append(FoundRun(folder.name, folder, owner, here=False))
    return found


def refuse_second_run(name: str, folder: Path) -> None:
    """Raises UserError if this user has another run of this name than the one in `folder`."""
    for run in found_runs():
        if run.name == name and run.own and run.folder != folder:
            raise going_on(name, where=f", started elsewhere ({run.folder})")


def _listened_on() -> Iterator[Path]:
    """The paths of all listening Unix sockets that could be the address of a run.

    Every user may give a socket any path, line breaks included, and Linux writes paths as they are. So any line may be
    invented. A line with another form is skipped, and so are paths with control characters or in no UTF-8.
    """
    try:
        lines = _SOCKETS.read_bytes().split(b"\n")
    except OSError:
        return
    for match in filter(None, map(_LINE.fullmatch, lines)):
        if int(match["flags"], 16) & _LISTENING:
            with suppress(UnicodeDecodeError):
                yield Path(match["path"].decode())


def _owner(path: Path) -> int | None:
    """The owner of a socket; None if the socket is gone, or if other users could replace the socket.

    The owner of the folder could replace the socket by a symbolic link, so the socket counts as this user's.
    """
    owner = _ROOT
    for one in (*reversed(path.parents), path):
        try:
            found = one.lstat()
        except PermissionError:
            return owner
        except OSError:
            return None
        owner = found.st_uid
        if owner not in (own_user(), _ROOT):
            return owner
        if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
            return None
    return owner
