"""Which events a sink delivers: one small language for all sinks.

    only:  {rule: [fall, lying], camera: "room*", severity: warning}      all of it must fit
    only:  [{rule: fall}, {kind: camera}]                                 one of them must fit
    never: {camera: hall, during: {from: "08:00", to: "18:00"}}           and none of these

`during` asks when the incident began, in `time_zone`: so its end goes where its beginning went. Of an event that is
about no incident, it asks for its own time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from camgraph.pipeline.errors import SettingError
from camgraph.pipeline.messages import EventPhase
from camgraph.pipeline.stage import Counts, FrameSize, SettingProblems, Settings, Stage, Upstream
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.facts import RuleNamesFact
from camgraph.stages.rules.schedule import PeriodDefinitions, Schedule
from camgraph.stages.rules.upstream import names_before, time_zone_before
from camgraph.stages.sinks.delivery.event_view import EventView, Kind
from camgraph.stages.video.dates import zone_of

Severity = Literal["info", "warning", "alarm"]
ANY_PHASE = "any"
"""Fits every filter, as far as its phase is concerned."""
_SEVERITIES: tuple[str, ...] = get_args(Severity)


def _as_list(value: Any) -> Any:
    """A single one may stand without brackets."""
    return value if isinstance(value, list) else [value]


Text = Annotated[str, Field(min_length=1, max_length=200)]
Texts = Annotated[list[Text], BeforeValidator(_as_list), Field(min_length=1, max_length=1000)]
Kinds = Annotated[list[Kind], BeforeValidator(_as_list), Field(min_length=1)]
Phases = Annotated[list[EventPhase], BeforeValidator(_as_list), Field(min_length=1)]


class Filter(Settings):
    """An event fits if each of these keys that is there fits it. `*` and `?` stand for any letters in texts."""

    kind: Kinds | None = Field(
        None, description="incident, footage (a picture or clip is ready), camera, counter, other"
    )
    camera: Texts | None = Field(None, description="Names of cameras")
    rule: Texts | None = Field(None, description="The ids of rules")
    action: Texts | None = Field(None, description="The actions of rules")
    severity: Severity | None = Field(None, description="This severe or more: info, warning, alarm")
    phase: Phases | None = Field(None, description="start, update, end, or single (an incident of one moment)")
    during: PeriodDefinitions | None = Field(None, description="Times of day, as in the schedules of rules")

    @model_validator(mode="after")
    def _has_a_condition(self) -> Filter:
        if not self.model_fields_set:
            raise ValueError("expected at least one of " + ", ".join(type(self).model_fields))
        return self


Filters = Annotated[list[Filter], BeforeValidator(_as_list), Field(min_length=1, max_length=100)]


def new_incidents_and_cameras() -> list[Filter]:
    """For sinks that tell people: the beginnings of incidents, and cameras that are lost and back."""
    incidents, cameras = {"kind": ["incident"], "phase": ["start", "single"]}, {"kind": ["camera"]}
    return [Filter.model_validate(incidents), Filter.model_validate(cameras)]


class SelectionSettings(Settings):
    """The settings of each sink that can leave out events."""

    only: Filters | None = Field(
        None, description="Deliver only events that fit this filter, or one of these; all by default"
    )
    never: Filters | None = Field(None, description="Do not deliver events that fit this filter, or one of these")
    time_zone: str = Field(
        "UTC", description="Of times of day, such as Europe/Berlin; by default that of the rules, or UTC"
    )

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        zone_of(name)
        return name

    @property
    def selects(self) -> bool:
        """Whether there is a filter at all."""
        return self.only is not None or self.never is not None


class Selection:
    """Tells events that fit one of `only` (all, if it is None) and none of `never`."""

    def __init__(self, only: Sequence[Filter] | None, never: Sequence[Filter] | None, time_zone: str) -> None:
        self._only = None if only is None else [_Compiled(one, time_zone) for one in only]
        self._never = [_Compiled(one, time_zone) for one in never or ()]

    def fits(self, view: EventView, *, phase: str | None = None) -> bool:
        """Whether the event is to be delivered. `phase`: as if it had this one, or `ANY_PHASE`."""
        wanted = view.phase if phase is None else phase
        # As long as the phase is open, a `never` about phases leaves nothing out.
        if any(one.fits(view, "" if wanted == ANY_PHASE else wanted) for one in self._never):
            return False
        return self._only is None or any(one.fits(view, wanted) for one in self._only)


F = TypeVar("F", bound=SelectionSettings)

REPEATED: Counts = {"repeated": "Events that a sink had before, and did not deliver again."}
"""The counter of those sinks that recognise repeated events."""


class SelectingSink(Stage[F]):
    """Base of the sinks whose settings select events: while the graph is planned, it checks and completes these."""

    settings_type: ClassVar[type[SelectionSettings]] = SelectionSettings
    counts: ClassVar[Counts] = {
        "written": "Events that a sink has written.",
        "filtered": "Events that a sink has left out, because its `only` or `never` says so.",
    }

    @classmethod
    def check_cameras(
        cls, settings: Any, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> SettingProblems:
        """A filter that names a camera which nobody has would never fit."""
        known = list(cameras)
        for key, filters in (("only", settings.only), ("never", settings.never)):
            for number, one in enumerate(filters or ()):
                for problem in names_nobody_has(one.camera, known):
                    yield (key, number, "camera"), problem

    @classmethod
    def follow(cls, settings: Any, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        """Times of day are those of the rules. Raises SettingError if a filter names a rule that nobody has."""
        if upstream.makers and upstream.makers <= upstream.nearest("rules").keys():  # no others: all events are known
            known = names_before(upstream)
            for key, filters in (("only", settings.only), ("never", settings.never)):
                for one in filters or ():
                    _raise_if_unknown(key, one, known)
        zone = time_zone_before(upstream)
        return {"time_zone": zone} if zone and "time_zone" not in settings.model_fields_set else {}


def _raise_if_unknown(key: str, one: Filter, known: Sequence[RuleNamesFact | None]) -> None:
    if None in known:
        return
    rules = [name for each in known if each for name in each["rules"]]
    actions = [name for each in known if each for name in each["actions"]]
    for name, texts, names in (("rule", one.rule, rules), ("action", one.action, actions)):
        for problem in names_nobody_has(texts, dict.fromkeys(names)):
            raise SettingError((key,), f"{name}: {problem}")


class _Compiled:
    """A filter, ready to be asked often."""

    def __init__(self, definition: Filter, time_zone: str) -> None:
        self._kinds = definition.kind and frozenset(definition.kind)
        self._phases = definition.phase and frozenset(definition.phase)
        self._camera = _pattern(definition.camera)
        self._rule = _pattern(definition.rule)
        self._action = _pattern(definition.action)
        self._severities = definition.severity and frozenset(_SEVERITIES[_SEVERITIES.index(definition.severity) :])
        self._schedule = definition.during and Schedule(definition.during, zone_of(time_zone))

    def fits(self, view: EventView, phase: str) -> bool:
        return (
            (not self._kinds or view.kind in self._kinds)
            and (not self._phases or phase == ANY_PHASE or phase in self._phases)
            and (not self._camera or self._camera.match(view.camera) is not None)
            and (not self._rule or self._rule.match(view.rule) is not None)
            and (not self._action or self._action.match(view.action) is not None)
            and (not self._severities or view.severity in self._severities)
            and (not self._schedule or self._schedule.is_time(view.begun_ns))
        )


def _pattern(texts: Sequence[str] | None) -> re.Pattern[str] | None:
    """Names are compared with case: those of cameras and rules differ by it."""
    return re.compile("|".join(translate(text) for text in texts)) if texts else None


def names_nobody_has(texts: Iterable[str] | None, known: Iterable[str]) -> list[str]:
    """Those that fit none of the known names, each with the nearest one: a misspelt name would never be noticed."""
    names = list(known)
    return [
        f"{text!r} fits none of {', '.join(names[:20]) or 'them'}{did_you_mean(text, names)}"
        for text in texts or ()
        if not any(re.match(translate(text), name) for name in names)
    ]
