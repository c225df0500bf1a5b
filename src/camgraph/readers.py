"""Adds the sinks that hand events, tracks and frames to a program to its graph. No graph file names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from camgraph.pipeline.errors import CamgraphError, UserError
from camgraph.pipeline.graph.arrows import arrows_of
from camgraph.pipeline.graph.definition import GraphFile, StageEntry
from camgraph.pipeline.graph.explain import plainly
from camgraph.pipeline.graph.nodes import EVENTS, Node
from camgraph.pipeline.messages import Event, Message
from camgraph.pipeline.plan import ProcessPlan, RunPlan
from camgraph.pipeline.registry import find_stage
from camgraph.stages.messages import Tracks

EVENTS_KIND, TRACKS_KIND, FRAMES_KIND = KINDS = ("events", "tracks", "frames")
USES: Mapping[str, str] = {kind: f"sink_api_{kind}" for kind in KINDS}
_NULL = "sink_null"
_ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class Wishes:
    """The kinds (of `KINDS`) that a program wants to read. `tracks_of`: the stage to read tracks of; "": the only one.

    `annotated`, `max_width` and `trail_s` are settings of the frames.
    """

    kinds: frozenset[str] = frozenset()
    tracks_of: str = ""
    annotated: bool = True
    max_width: int | None = None
    trail_s: float = 0
    in_process: bool = False

    def amend(self, parsed: GraphFile) -> GraphFile:
        """Return the graph with the sinks added: a `pipeline.graph.loading.Amend`. Raises UserError if it cannot."""
        added = _Adding(parsed)
        if EVENTS_KIND in self.kinds:
            added.require_events()
            added.add(EVENTS_KIND, USES[EVENTS_KIND], EVENTS)
        if TRACKS_KIND in self.kinds:
            added.add(TRACKS_KIND, USES[TRACKS_KIND], added.tracks_of(self.tracks_of))
        if FRAMES_KIND in self.kinds:
            settings = {"annotated": self.annotated, "max_width": self.max_width, "trail_s": self.trail_s}
            ends = {"frames": added.source(), "tracks": added.tracks_of(self.tracks_of)}
            added.add(FRAMES_KIND, USES[FRAMES_KIND], ends, {k: v for k, v in settings.items() if v is not None})
        added.read_the_rest()
        return added.graph(in_process=self.in_process)


def require_frame_settings(**settings: object) -> None:
    """Raises UserError with the name of the first that the sink of frames refuses: no line of a graph has it."""
    try:
        find_stage(USES[FRAMES_KIND]).settings_type.model_validate(settings)
    except ValidationError as error:
        raise UserError(plainly(error, settings), error_id="option-value") from None


class _Adding:
    """Adds stages to a parsed but unchecked graph. Its mistakes are reported later, by the check."""

    def __init__(self, parsed: GraphFile) -> None:
        self._parsed = parsed
        self._stages = dict(parsed.stages)
        self._made = {name: _outputs(entry.use) for name, entry in parsed.stages.items()}

    def _makers(self, wanted: type[Message]) -> list[str]:
        return [name for name, made in self._made.items() if any(issubclass(one, wanted) for one in made or ())]

    @property
    def _is_known(self) -> bool:
        return all(made is not None for made in self._made.values())

    def require_events(self) -> None:
        if not self._makers(Event) and self._is_known:
            raise UserError(
                "this graph makes no events: add a stage such as `rules`, or read `tracks()` or `frames()`",
                error_id="nothing-to-read",
            )

    def tracks_of(self, wanted: str) -> str:
        makers = self._makers(Tracks)
        if wanted in makers or (not wanted and len(makers) == 1) or not self._is_known:
            return wanted or next(iter(makers), "")
        known = ", ".join(makers)
        if wanted:
            raise UserError(
                f"`{wanted}` makes no tracks; expected one of: {known or '(no stage makes any)'}",
                error_id="nothing-to-read",
            )
        if makers:
            raise UserError(
                f"several stages make tracks: name the one to read with `stage=`, one of: {known}",
                error_id="nothing-to-read",
            )
        raise UserError(
            "no stage of this graph makes tracks: add one such as `track: {use: track, from: people}`",
            error_id="nothing-to-read",
        )

    def source(self) -> str:
        return next((name for name, entry in self._stages.items() if entry.from_ is None), "")

    def add(self, kind: str, use: str, ends: str | Mapping[str, str], settings: Mapping[str, object] = {}) -> None:
        """Add a sink, unless a stage that it reads from is missing: the check reports that."""
        if not ends or (not isinstance(ends, str) and not all(ends.values())):
            return
        name = next(n for n in _names(f"python_{kind}") if n not in self._stages)
        values = {"use": use, "from": ends, **({"with": dict(settings)} if settings else {})}
        self._stages[name] = StageEntry.model_validate(values)

    def read_the_rest(self) -> None:
        """Add sinks for unread events and tracks, so that the check accepts a graph that a program reads in part."""
        read = {arrow.sender for name, entry in self._stages.items() for arrow in arrows_of(Node(name, entry, None))}
        for name in self._makers(Event):
            if name not in read and EVENTS not in read:
                self.add("unread", _NULL, name)
        for name in self._makers(Tracks):
            if name not in read:
                self.add("unread", _NULL, name)

    def graph(self, *, in_process: bool) -> GraphFile:
        changed: dict[str, object] = {"stages": self._stages}
        return self._parsed.model_copy(update={**changed, **({"processes": "one"} if in_process else {})})


def _names(name: str) -> Iterable[str]:
    yield name
    number = 1
    while True:
        number += 1
        yield f"{name}_{number}"


def _outputs(use: str) -> tuple[type[Message], ...] | None:
    """Return the types that a kind of stage makes; None if there is no such kind, which the check reports."""
    try:
        return find_stage(use).outputs
    except CamgraphError:
        return None


def addressed(plan: RunPlan, addresses: Mapping[str, Path]) -> RunPlan:
    """Return the plan with the addresses, by kind, on which the program listens."""
    of_use = {USES[kind]: str(path) for kind, path in addresses.items()}

    def with_addresses(process: ProcessPlan) -> ProcessPlan:
        stages = tuple(
            replace(stage, settings={**stage.settings, _ADDRESS: of_use[stage.use]}) if stage.use in of_use else stage
            for stage in process.stages
        )
        return replace(process, stages=stages)

    return replace(plan, processes=tuple(map(with_addresses, plan.processes)))


__all__ = ["EVENTS_KIND", "FRAMES_KIND", "KINDS", "TRACKS_KIND", "Wishes", "addressed"]
