"""Where things lie: the XDG folders, and what a path in a graph file means.

$XDG_CACHE_HOME/camgraph/assets/    pulled models and clips, named in graphs as `asset:NAME`
$XDG_STATE_HOME/camgraph/<run>/     what must outlive a run: the outbox
$XDG_RUNTIME_DIR/camgraph/<run>/    sockets of a run (mode 0700); /tmp/camgraph-<uid>/<run>/ without one
"""

from __future__ import annotations

import os
from pathlib import Path

ASSET_PREFIX = "asset:"


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
    return Path("/tmp") / f"camgraph-{os.getuid()}"  # noqa: S108 - made with mode 0700 and checked by the run


def resolve(text: str, base_folder: Path) -> Path:
    """A path as a graph file writes it: `asset:NAME`, absolute, `~/...`, or relative to the graph file's folder."""
    if text.startswith(ASSET_PREFIX):
        return asset_folder() / text.removeprefix(ASSET_PREFIX)
    path = Path(text).expanduser()
    return path if path.is_absolute() else base_folder / path
