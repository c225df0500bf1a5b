"""Answers of a run to requests about its cameras, as the run makes them and its commands read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from camgraph.pipeline.monitoring.run_status import CameraStatus, read


@dataclass(frozen=True, slots=True)
class CameraList:
    """The cameras of a run, and the requirements for a further one (`pipeline.supervision.requests`).

    `source`: the kind of the graph's source; `defaults`: the settings that a further camera starts with; `graph_file`:
    "" if there is none. `busy`: a change has not come to its end. `problems`: camera -> why it was refused; `refused`:
    process -> why it does not open with its new settings.
    """

    source: str = ""
    base_folder: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict, repr=False)
    graph_file: str = ""
    busy: bool = False
    coming: Sequence[str] = ()
    leaving: Sequence[str] = ()
    paused: Sequence[str] = ()
    by_command: Sequence[str] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    cameras: Mapping[str, CameraStatus] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the answer of a run. Raises as `RunStatus.from_json`."""
        return read(cls, data)


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The changes that a changed graph file makes to a run: names of cameras and processes.

    `restarted`: processes that begin anew with other settings; `going_on`: those that take them while they live.
    """

    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    changed: Sequence[str] = ()
    kept: Sequence[str] = ()
    restarted: Sequence[str] = ()
    going_on: Sequence[str] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the answer of a run. Raises as `RunStatus.from_json`."""
        return read(cls, data)

    @property
    def changes_something(self) -> bool:
        """False if the file matches the run already."""
        return bool(self.added or self.removed or self.changed or self.restarted or self.going_on)
