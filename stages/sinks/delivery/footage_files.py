"""The pictures and clips that events name, for sinks that send them along or tell where they are.

An event may hold text of strangers, and a stage of others may put any name into it. So a name counts only if it leads
into the folder of the graph file or into one of `sink_footage`, and only a JPEG is a picture.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from camgraph.pipeline.errors import Unavailable, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.stage import Settings, Upstream
from camgraph.pipeline.system.paths import resolve_output_path
from camgraph.stages.sinks.delivery.event_view import EventView

_JPEG = b"\xff\xd8"
_MOST_SHOWN = 200
TOO_LARGE = "it is too large"
NOT_IN_TIME = "it was not ready in time"


class FootageSettings(Settings):
    """For sinks that look at the files of `sink_footage`."""

    footage_folders: list[str] | None = Field(
        None,
        description="The folders of `sink_footage` beside it, filled in automatically: files that are neither there "
        "nor beside the graph file are ignored",
    )


def footage_beside(settings: FootageSettings, upstream: Upstream) -> Mapping[str, Any]:
    """For `Stage.follow`."""
    folders = [facts["footage"]["folder"] for facts in upstream.beside.values() if "footage" in facts]
    return {"footage_folders": folders} if folders and settings.footage_folders is None else {}


def picture_named(view: EventView) -> str:
    """The file of an event's picture; "" if it has none."""
    is_picture = view.kind == "footage" and view.data.get("kind") in ("snapshot", "best")
    name = view.data.get("file" if is_picture else "snapshot")
    return name if isinstance(name, str) else ""


class TooLarge(OSError):
    """The file is larger than wanted."""


class FootageFiles:
    """Finds files by their names in events. `folders`: of `FootageSettings`, None if they are unknown."""

    def __init__(self, folders: Sequence[str] | None, base_folder: Path) -> None:
        self._folders = (".", *(folders or ()))
        self._base_folder = base_folder

    def path(self, name: str) -> Path:
        """The absolute path of this file, there or not. Raises ValueError if it lies elsewhere, also by a link."""
        try:
            path = resolve_output_path(name, self._base_folder)
            place = Path(os.path.realpath(path))
            if any(place.is_relative_to(folder) and place != folder for folder in self._places()):
                return path
        except (UserError, OSError, ValueError):  # a name that no file can have
            pass
        shown_name = shown(name, _MOST_SHOWN)
        raise ValueError(f"{shown_name}: this file is neither in a folder of `sink_footage` nor beside the graph file")

    def picture(self, name: str, most_bytes: float) -> bytes:
        """Read a JPEG. Raises ValueError if the name leads elsewhere or to no JPEG; TooLarge; OSError."""
        with open(self.path(name), "rb", opener=_without_waiting) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise ValueError(f"{shown(name, _MOST_SHOWN)}: this is no file")
            if about.st_size > most_bytes:
                raise TooLarge
            found = file.read()
        if not found.startswith(_JPEG):
            raise ValueError(f"{shown(name, _MOST_SHOWN)}: this is no JPEG")
        return found

    def picture_or_why(self, name: str, most_bytes: float, *, may_come: bool) -> tuple[bytes | None, str]:
        """A JPEG, or else why there is none: `TOO_LARGE`, `NOT_IN_TIME`, or a sentence about the file.

        Raises Unavailable instead of `NOT_IN_TIME` while the picture may still come.
        """
        try:
            return self.picture(name, most_bytes), ""
        except TooLarge:
            return None, TOO_LARGE
        except ValueError as error:
            return None, str(error)
        except OSError:
            if may_come:
                raise Unavailable("the picture is being made", patient=True) from None
            return None, NOT_IN_TIME

    def _places(self) -> Iterator[Path]:
        for folder in self._folders:
            yield Path(os.path.realpath(resolve_output_path(folder, self._base_folder)))


def _without_waiting(path: str, flags: int) -> int:
    """A pipe would wait for its writer."""
    return os.open(path, flags | os.O_NONBLOCK)
