"""Runs one stage by hand, without a graph. `pipeline.testing` offers this to tests, and is stricter with counters."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import structlog

from camgraph.pipeline.dead_letters import DeadLetters
from camgraph.pipeline.messages import Array, End, Event, Message, Stamp
from camgraph.pipeline.stage import CameraState, Logger, Stage
from camgraph.pipeline.traces import traceparent

AnyStage = TypeVar("AnyStage", bound=Stage[Any])


def stamp(seq: int = 0, camera: str = "cam", *, epoch: int = 0, fps: float = 10.0) -> Stamp:
    """The stamp of frame `seq` of a file with a constant frame rate."""
    time_ns = round(seq * 1e9 / fps)
    return Stamp(camera, epoch, seq, time_ns, time_ns, time_ns, seq, (1, round(fps)))


@dataclass
class HandContext:
    """A context for tests, which keeps the reports of a stage and gives it plain arrays."""

    base_folder: Path
    state_folder: Path
    stage: str = "stage"
    graph: str = "test"
    cameras: tuple[str, ...] = ("cam",)
    worker: int = 0
    workers: int = 1
    beside_sources: bool = False
    threads: int = 1
    batch_max: int = 1
    cameras_now: Mapping[str, CameraState] = field(default_factory=dict)
    switches: Mapping[str, bool] = field(default_factory=dict)
    resets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    cores: int = 1
    incarnation: int = 1
    outputs_leave: bool = False
    slots: int = 0
    log: Logger = field(default_factory=structlog.get_logger)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(name, camera) -> the sum of what the stage has counted under that name; the camera is "" if it named none."""
    files: list[Path] = field(default_factory=list)
    """The files that the stage has named with `wrote`, in that order."""
    openings: list[tuple[str, float]] = field(default_factory=list)
    """The slow steps that `open` announced, and the seconds that it announced for each."""
    signs: list[float] = field(default_factory=list)
    """When a source has called `alive` (monotonic seconds)."""
    camera_states: list[tuple[str, str, str]] = field(default_factory=list)
    """(camera, state, why) of all reports of a source."""
    troubles: dict[str, str] = field(default_factory=dict)
    """Camera ("" for all) -> the present trouble of the stage."""
    camera_facts: dict[str, dict[str, str | float]] = field(default_factory=dict)
    facts: dict[str, str | float] = field(default_factory=dict)
    """What the stage has told about itself."""
    traced_share: float | None = None
    """The share of events that are traced; None for none."""
    emitted: list[Event] = field(default_factory=list)
    """The events that a sink has given to the outbox by itself."""
    counters: dict[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """Camera -> the last numbers of its counters."""

    @property
    def dead_letters(self) -> DeadLetters:
        """In the state folder; iterate over them to see what the stage has given up."""
        return DeadLetters(self.state_folder, self.stage)

    def new_arrays(self, specs: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, Array]:
        return {name: np.empty(shape, dtype) for name, (shape, dtype) in specs.items()}

    def count(self, name: str, camera: str, n: int = 1) -> None:
        self.counts[name, camera] += n

    def counters_are(self, camera: str, counters: Mapping[str, Mapping[str, int]]) -> None:
        self.counters[camera] = counters

    def trouble(self, why: str, camera: str = "") -> None:
        self.troubles.pop(camera, None)
        if why:
            self.troubles[camera] = why

    def opening(self, doing: str, within_s: float = 0.0) -> None:
        self.openings.append((doing, within_s))

    def alive(self) -> None:
        self.signs.append(time.monotonic())

    def camera_is(self, camera: str, state: str, why: str = "") -> None:
        self.camera_states.append((camera, state, why))

    def camera_shows(self, camera: str, **facts: str | float) -> None:
        self.camera_facts.setdefault(camera, {}).update(facts)

    def shows(self, **facts: str | float) -> None:
        self.facts.update(facts)

    def wrote(self, path: Path) -> None:
        self.files.append(path)

    def traceparent(self, event_id: str) -> str | None:
        return None if self.traced_share is None else traceparent(event_id, self.traced_share)

    def emit(self, event: Event) -> None:
        self.emitted.append(event)


@contextmanager
def opened(
    stage_class: type[AnyStage], settings: Mapping[str, Any], *, folder: Path, **context: Any
) -> Iterator[AnyStage]:
    """The stage, opened with these settings; closed at the end. `folder` serves as base and state folder."""
    hand = HandContext(folder, folder, **context)
    stage = stage_class(stage_class.settings_type.model_validate(settings), hand)
    try:
        stage.open()
        yield stage
    finally:
        stage.close()


def reports_of(stage: Stage[Any]) -> HandContext:
    """Return the reports of a stage that `opened` has opened: its counts, files, troubles and the rest.

    They are those of `stage.context`, with their types. Raises TypeError for a stage that runs in a graph.
    """
    if not isinstance(stage.context, HandContext):
        raise TypeError(f"{stage.context.stage} was not opened by `opened`: its reports go to the run")
    return stage.context


def feed(stage: Stage[Any], items: Sequence[Any], *, batch: int = 1, end: bool = False) -> list[Message]:
    """Return all that `stage` makes of `items`, handed in by `batch`; with `end`, also of the end of each camera.

    Raises TypeError for an output of a type that the stage does not declare, as the runtime does.
    """
    outputs: list[Message] = []
    for start in range(0, len(items), batch):
        outputs += stage.process(items[start : start + batch])
    if end:
        last = {item.stamp.camera: item.stamp for item in items}
        for camera, at in last.items():
            outputs += stage.finish(camera, End(at))
    for output in outputs:
        if type(output) not in stage.outputs:
            known = ", ".join(kind.__name__ for kind in stage.outputs) or "none"
            raise TypeError(f"made {type(output).__name__}, which is not among its declared outputs ({known})")
    return outputs
