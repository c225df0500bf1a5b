"""The folders of camgraph, and the meaning of a path in a graph file.

cache   assets/   pulled models and clips, named in graphs as `asset:NAME`
state   <run>/    what must outlive a run: the outbox
runs    <run>/    sockets of a run (mode 0700)
/dev/shm/camgraph-<uid>-<run>-*     pixels of a run

The first of these variables that is set gives the folder; systemd sets those of the second row in a unit.

        cache                       state                       runs
        $CAMGRAPH_CACHE_DIR         $CAMGRAPH_STATE_DIR         $CAMGRAPH_RUN_DIR
        $CACHE_DIRECTORY            $STATE_DIRECTORY            $RUNTIME_DIRECTORY/runs
        $XDG_CACHE_HOME/camgraph    $XDG_STATE_HOME/camgraph    $XDG_RUNTIME_DIR/camgraph
        ~/.cache/camgraph           ~/.local/state/camgraph     /tmp/camgraph-<uid>
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.disk import is_of_kernel, kind_of
from camgraph.pipeline.system.redaction import redact_urls

ASSET_PREFIX = "asset:"
_ADDRESS = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")
_MAX_PATH = 4095
_MAX_PART = 255
"""Of Linux; other file systems take less, and say so themselves."""
_SHOWN = 100
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - names in it are checked, and files are 0600
TEMPORARY = Path("/tmp")  # noqa: S108 - folders in it are made with mode 0700, and existing ones are checked
CACHE_DIR, STATE_DIR, RUN_DIR = "CAMGRAPH_CACHE_DIR", "CAMGRAPH_STATE_DIR", "CAMGRAPH_RUN_DIR"
_LONGEST_RUNS = 49
"""Of the path of the folder of all runs: an ipc address ends at 107 characters."""


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    if value.startswith("/"):
        return Path(value) / "camgraph"
    try:
        home = Path.home()
    except RuntimeError:
        raise EnvironmentProblem(
            f"this user has no home folder: set HOME, or {CACHE_DIR} and {STATE_DIR} to folders that it may write",
            error_id="folders-of-user",
        ) from None
    if not home.is_absolute() or not os.environ.get("HOME", "/"):
        raise EnvironmentProblem(
            f"HOME is {os.environ.get('HOME', '')!r}, expected an absolute path: set HOME, or {CACHE_DIR} and "
            f"{STATE_DIR} to folders that this user may write",
            error_id="folders-of-user",
        )
    return home / default / "camgraph"


def _chosen(variable: str) -> Path | None:
    """The folder that the user has chosen for camgraph, if any. Raises UserError."""
    value = os.environ.get(variable, "")
    if value and not value.startswith("/"):
        raise UserError(
            f"{variable}: expected an absolute path, such as /var/lib/camgraph, got {value[:_SHOWN]!r}",
            error_id="folders-of-user",
        )
    return Path(value) if value else None


def _of_unit(variable: str) -> Path | None:
    """The first of the folders that systemd has made for a unit, if any."""
    first = os.environ.get(variable, "").partition(":")[0]
    return Path(first) if first.startswith("/") else None


def asset_folder() -> Path:
    """The folder of pulled assets; it may not exist yet."""
    folder = _chosen(CACHE_DIR) or _of_unit("CACHE_DIRECTORY") or _xdg("XDG_CACHE_HOME", ".cache")
    return folder / "assets"


def what_moves_assets() -> str:
    """For a folder that is missing or unusable: the variable that gives the folder of assets, and a value to set."""
    variables = (CACHE_DIR, "CACHE_DIRECTORY", "XDG_CACHE_HOME", "HOME")
    decides = next((name for name in variables if os.environ.get(name, "").startswith("/")), "HOME")
    value = os.environ.get(decides, "")
    if decides == CACHE_DIR:
        return f"{CACHE_DIR} is {value}: set it to a folder that you may write"
    return f"the folder follows from {decides} ({value[:_SHOWN]}): set that, or {CACHE_DIR}, to one that you may write"


def lost_home() -> str:
    """Advice if the folder of assets is below a home folder that does not exist; "" if it exists."""
    home = Path(os.environ.get("HOME", ""))
    if not home.is_absolute() or os.path.isdir(home) or not asset_folder().is_relative_to(home):  # noqa: PTH112
        return ""
    return f"HOME is {home}, and there is no such folder: set HOME, or {CACHE_DIR} to the folder of camgraph's cache"


def state_folder(run: str) -> Path:
    """The folder that a run of this name leaves to the next one; it may not exist yet."""
    folder = _chosen(STATE_DIR) or _of_unit("STATE_DIRECTORY") or _xdg("XDG_STATE_HOME", ".local/state")
    return folder / run


def runs_folder() -> Path:
    """The folder in which the runs of this user are that are started here; it may not exist yet. Raises UserError."""
    chosen = chosen_runs_folder()
    if chosen:
        return chosen
    unit = _of_unit("RUNTIME_DIRECTORY")
    for folder in (unit / "runs" if unit else None, _runtime_folder(os.environ.get("XDG_RUNTIME_DIR", ""))):
        if folder and len(str(folder)) <= _LONGEST_RUNS and folder.parent.is_dir():
            return folder
    if not hasattr(os, "getuid"):  # Windows has a temporary folder for each user
        return Path(tempfile.gettempdir()) / "camgraph"
    return TEMPORARY / f"camgraph-{os.getuid()}"


def chosen_runs_folder() -> Path | None:
    """The only folder in which to look for runs, if the user has chosen one. Raises UserError."""
    chosen = _chosen(RUN_DIR)
    if chosen and len(str(chosen)) > _LONGEST_RUNS:
        raise UserError(
            f"{RUN_DIR}: expected a path of at most {_LONGEST_RUNS} characters, for the addresses of sockets in it "
            f"end at 107, got {len(str(chosen))}: {str(chosen)[:_SHOWN]}",
            error_id="folders-of-user",
        )
    return chosen


def other_runs_folders() -> list[Path]:
    """The folders of runs that this user started in another login, or while somebody had taken the usual place."""
    if chosen_runs_folder() or not hasattr(os, "getuid"):
        return []
    usual = [Path(f"/run/user/{os.getuid()}/camgraph"), TEMPORARY / f"camgraph-{os.getuid()}"]
    return [*usual, *sorted(TEMPORARY.glob(f"camgraph-{os.getuid()}-*"))]


def _runtime_folder(value: str) -> Path | None:
    return Path(value) / "camgraph" if value.startswith("/") else None


def id_of_unreadable(error: OSError) -> str:
    """The `error_id` of a file that cannot be read."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "file-missing"
    return "file-permission" if isinstance(error, PermissionError) else "cannot-read"


def resolve(text: str, base_folder: Path) -> Path:
    """A path as a graph file writes it: `asset:NAME`, absolute, `~/...`, or relative to the graph file's folder.

    Raises UserError for a path that no file can have, for the `~home` of an unknown user, and if a folder on the way
    keeps this user out. So you can look at the returned path to see whether a file is there.
    """
    path = _place_of(text, base_folder)
    try:
        path.stat()
    except PermissionError:
        way_out = f"; {what_moves_assets()}" if text.startswith(ASSET_PREFIX) else ""
        raise UserError(f"no permission to look at {path}{way_out}", error_id="file-permission") from None
    except OSError:  # it is not there, or its disk fails: reading it says so
        pass
    return path


def why_no_path(text: str) -> str:
    """Why this cannot be a path: it is an address. "" if it may be one.

    To ask before it becomes a `Path`: that takes one slash of `https://`, so nobody sees that a password stands in it.
    """
    if not _ADDRESS.match(text.removeprefix(ASSET_PREFIX)):
        return ""
    return (
        f"{redact_urls(text.strip())}: is an address, expected the path of a file or folder on this machine; copy the "
        "file here, or mount its disk"
    )


def require_path(text: str) -> None:
    """Raises UserError for an address."""
    problem = why_no_path(text)
    if problem:
        raise UserError(problem, error_id="path-not-possible")


def _place_of(text: str, base_folder: Path) -> Path:
    require_path(text)
    if text.startswith(ASSET_PREFIX):
        path = asset_folder() / text.removeprefix(ASSET_PREFIX)
    else:
        try:
            path = base_folder / Path(text).expanduser()
        except RuntimeError:
            message = f"no such file or folder: {_short(text)}: no user of this machine has the name after `~`"
            raise UserError(message, error_id="path-not-possible") from None
    _require_possible(path)
    return path


def _require_possible(path: Path) -> None:
    try:
        whole = os.fsencode(path)
    except UnicodeEncodeError:
        raise UserError(
            f"{_short(ascii(str(path)))}: holds characters that no file name can have", error_id="path-not-possible"
        ) from None
    if b"\0" in whole:
        raise UserError(
            f"{_short(ascii(str(path)))}: holds a NUL character, which no file name can have",
            error_id="path-not-possible",
        )
    if len(whole) > _MAX_PATH or any(len(os.fsencode(part)) > _MAX_PART for part in path.parts):
        raise UserError(
            f"no such file or folder: {_short(str(path))}: a path has at most {_MAX_PATH} bytes, and each of its names "
            f"at most {_MAX_PART}",
            error_id="file-missing",
        )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def instead_of_file(path: Path) -> str:
    """The kind of thing in the place of a readable file ("a pipe"); "" for a file, and if nothing is found.

    To ask before opening: opening a pipe waits for somebody to write into it, and reading a device, or a file such as
    /proc/kmsg, may never end.
    """
    try:
        found = path.stat()
    except (OSError, ValueError):
        return ""
    return kind_of(found.st_mode) or ("a file of the kernel" if is_of_kernel(found) else "")


def why_no_output(text: str, base_folder: Path, *, grows: bool = True) -> str:
    """Why nothing could be written to an output of this path; "" if `resolve_output` and a write should succeed.

    Leaves nothing behind. `grows`: an existing file is appended to, rather than replaced. Raises UserError for an
    impossible path of an output.
    """
    path = resolve_output_path(text, base_folder)
    place = Path(os.path.realpath(path))
    try:
        kind = kind_of(place.stat().st_mode)
    except FileNotFoundError:
        return _why_no_new_file(place, make_folders=not Path(text).expanduser().is_absolute())
    except OSError as error:
        return f"{path}: cannot be written: {error.strerror}; change its permissions, or name another path"
    if kind == "a folder":
        return f"{path}: is a folder, expected a file; add a file name"
    if kind and kind != "a device":
        return f"{path}: is {kind}, expected a file; name another path"
    if grows and not _may(place, os.R_OK | os.W_OK):
        return f"{path}: this user cannot write it; change its permissions, or name another path"
    return "" if grows else _why_no_new_file(place, make_folders=False)


def _why_no_new_file(path: Path, *, make_folders: bool) -> str:
    folder = path.parent
    while make_folders and not os.path.lexists(folder):
        folder = folder.parent
    if not os.path.lexists(folder):
        return f"{folder}: no such folder; make it, mount its disk, or name another path"
    if not folder.is_dir():
        return f"{folder}: is no folder; name another path"
    if not _may(folder, os.W_OK | os.X_OK):
        return f"{folder}: this user cannot write in this folder; change its permissions, or name another path"
    return ""


def _may(place: Path, mode: int) -> bool:
    return os.access(place, mode, effective_ids=os.access in os.supports_effective_ids)


def resolve_output_path(text: str, base_folder: Path) -> Path:
    """As `resolve`; raises UserError also for an asset, for these are only read."""
    require_path(text)
    if text.startswith(ASSET_PREFIX):
        raise UserError(f"{text}: assets are only read; give a path to write to", error_id="path-not-possible")
    return _place_of(text, base_folder)


def resolve_output(text: str, base_folder: Path) -> Path:
    """The path of an output, resolved as by `resolve`; missing folders of a relative path are made.

    A relative path lies beside the graph and means a new folder. A missing absolute folder more likely is a mistyped
    one, or a disk that is not mounted, whose place on the system's own disk must not be filled. Raises UserError or
    EnvironmentProblem.
    """
    path = resolve_output_path(text, base_folder)
    try:
        if path.is_dir():
            raise UserError(f"{path}: is a folder, expected a file; add a file name", error_id="path-not-possible")
        if not Path(text).expanduser().is_absolute():
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentProblem(
            f"{path.parent}: cannot use this folder for {path.name}: {error.strerror}", error_id="path-not-possible"
        ) from error
    if not path.parent.is_dir():
        raise UserError(
            f"{path.parent}: no such folder; make it, mount its disk, or name another path", error_id="file-missing"
        )
    return path
