"""What a graph needs of the machine that it is to serve on, and whether a user may have it."""

from __future__ import annotations

import importlib.util
import os
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph import Graph, plan_of
from camgraph.pipeline.system.paths import ASSET_PREFIX, asset_folder

_HOMES = (Path("/home"), Path("/root"), Path("/run/user"))
_PRIVATE = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - named, because a service has its own
_NOT_TO_OPEN = Path("/dev")


@dataclass(frozen=True, slots=True)
class Account:
    """The user of a service. `uid` is None if it does not exist yet: then it is nobody's friend."""

    name: str
    uid: int | None = None
    gids: frozenset[int] = frozenset()

    @classmethod
    def named(cls, name: str) -> Account:
        """The user of this name as the machine knows it now."""
        import pwd  # noqa: PLC0415 - there is none on Windows

        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            return cls(name)
        return cls(name, entry.pw_uid, frozenset(os.getgrouplist(name, entry.pw_gid)))

    def may(self, path: Path, mode: int) -> bool:
        """By the bits of the file; `mode` is 4 (read), 2 (write), 1 (enter), or a sum."""
        found = path.stat()
        if self.uid == 0:
            return True
        shift = 6 if found.st_uid == self.uid else 3 if found.st_gid in self.gids else 0
        return (stat.S_IMODE(found.st_mode) >> shift) & mode == mode

    def keeps_out(self, path: Path, mode: int) -> Path | None:
        """The folder, or the file itself, that keeps this user from using `path` so; None if nothing does."""
        for folder in reversed(path.parents):
            if not self.may(folder, 1):
                return folder
        return None if self.may(path, mode) else path


def written_folders(graph: Graph) -> list[Path]:
    """The folders outside of the state folder that the stages of a graph write."""
    found = {
        Path(os.path.normpath(folder.absolute()))
        for node in graph.completed.nodes
        if node.stage is not None
        for folder in node.stage.written_folders(node.settings, graph.base_folder)
    }
    return sorted(folder for folder in found if not folder.is_relative_to(_NOT_TO_OPEN))


_PROGRAM_WAY_OUT = "install camgraph where all may read it, for example by `/usr/bin/python3 -m venv /opt/camgraph`"


def require_usable(graph_file: Path, account: Account) -> None:
    """Raises UserError if the user could not even read the graph or start camgraph."""
    if in_private_folders([graph_file]):
        raise UserError(
            f"a service has a /tmp of its own, and would not see everything there: move {graph_file}",
            error_id="service-permissions",
        )
    for path, mode, way_out in (
        (graph_file, 4, "put the graph and its files into a folder such as /etc/camgraph"),
        *((path, 5, _PROGRAM_WAY_OUT) for path in interpreter()),
    ):
        barrier = account.keeps_out(path, mode)
        if barrier is not None:
            raise UserError(
                f"the user {account.name} may not use {path}, because of the permissions of {barrier}: {way_out}, or "
                "name a user who may, by --user",
                error_id="service-permissions",
            )


def next_to_do(folders: list[Path], account: Account) -> Iterator[str]:
    """Commands that let the user write these folders."""
    for folder in folders:
        if not folder.is_dir():
            yield shlex.join(["install", "-d", "-o", account.name, str(folder)])
        elif account.keeps_out(folder, 3) is not None:
            yield f"{shlex.join(['chown', account.name, str(folder)])}   # it must be able to write there"


def in_home(*paths: Path) -> bool:
    """Whether one of them is in somebody's home folder."""
    return any(path.is_relative_to(home) for path in paths for home in _HOMES)


def in_private_folders(folders: list[Path]) -> list[Path]:
    """Those that a service has for itself: nobody else sees its files there, and they are gone when it ends."""
    return [folder for folder in folders if any(folder.is_relative_to(one) for one in _PRIVATE)]


def assets(graph: Graph) -> set[Path]:
    """The files in the folder of assets that a graph names; those that belong to them have the same stem."""
    plan = plan_of(graph)
    values = [
        *plan.camera_settings.values(),
        *(stage.settings for process in plan.processes for stage in process.stages),
    ]
    named = {text for value in values for text in _texts(value) if text.startswith(ASSET_PREFIX)}
    stems = {Path(text.removeprefix(ASSET_PREFIX)).stem for text in named}
    folder = asset_folder()
    return {file for file in folder.glob("*.*") if file.stem in stems and file.is_file()}


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for one in value.values():
                yield from _texts(one)
        case list() | tuple():
            for one in value:
                yield from _texts(one)


def uses_video_devices(graph: Graph) -> bool:
    """Whether one of its cameras is at this machine."""
    return any(str(values.get("url", "")).startswith("/dev/video") for values in graph.camera_settings.values())


def is_live(graph: Graph) -> bool:
    """Whether it goes on for ever."""
    return bool(plan_of(graph).live_cameras)


def program() -> tuple[str, ...]:
    """The words that start this camgraph, wherever they are typed."""
    script = Path(sys.executable).with_name("camgraph")
    return (str(script),) if script.is_file() else (sys.executable, "-P", "-m", "camgraph")


def interpreter() -> tuple[Path, ...]:
    """The Python of this camgraph, by its own path and by those that links lead to."""
    own = Path(sys.executable)
    return (own, own.resolve())


def makes_machine_code() -> bool:
    """Whether a library is installed that `infer` may choose, and that writes machine code into its memory."""
    return importlib.util.find_spec("openvino") is not None
