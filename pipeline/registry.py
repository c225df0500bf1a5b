"""Finds stages by their name in a graph. Own stages and those of other packages are found the same way: entry points.

    [project.entry-points."camgraph.stages"]
    blur = "my_package.blur:Blur"

Only the module of the stage that is asked for is imported.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.metadata import Distribution, EntryPoint, entry_points
from inspect import signature
from traceback import walk_tb
from typing import Any, get_args

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.messages import Message
from camgraph.pipeline.stage import Settings, Source, Stage
from camgraph.pipeline.system.spelling import did_you_mean

GROUP = "camgraph.stages"

_FORMER = {"pipeline", "stages", "tools"}
"""The names under which these packages were imported before they lay in `camgraph`."""

AnyStage = type[Stage[Any]] | type[Source[Any]]


@functools.cache
def registered(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points of a group by their names; several of a name if packages disagree."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, {}).setdefault(f"{point.value} {distribution_of(point)}", point)
    return {name: tuple(points.values()) for name, points in sorted(found.items())}


def distribution_of(point: EntryPoint) -> str:
    """The name of the distribution that registers an entry point."""
    return _name_of(point.dist) if point.dist else "an unknown distribution"


def place_in_stage(bug: BaseException) -> str:
    """Where an exception left a stage of another package: "package.module, line 12"; "" if it went through none.

    The runtime calls stages in many places, and an exception is not its own bug if a stage has raised it.
    """
    points = (point for named in registered(GROUP).values() for point in named)
    packages = {point.value.partition(":")[0].partition(".")[0] for point in points} - {"camgraph"}
    modules = [(str(frame.f_globals.get("__name__")), line) for frame, line in walk_tb(bug.__traceback__)]
    places = [f"{module}, line {line}" for module, line in modules if module.partition(".")[0] in packages]
    return places[-1] if places else ""


def remedy(error: BaseException) -> str:
    """What to do about code of another package that cannot be imported."""
    missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    if missing.partition(".")[0] in _FORMER:
        return f"camgraph's packages lie in `camgraph` now: write `camgraph.{missing}` instead, and install it anew"
    return "install what is missing, or its update"


@functools.cache
def _name_of(distribution: Distribution) -> str:
    """Read once for all of its stages, as each process does at its start: its metadata hold its whole README."""
    return distribution.name


def stage_names(distribution: str | None = None) -> tuple[str, ...]:
    """The names of all stages that are installed, in order; with `distribution`, only of its own."""
    return tuple(
        name
        for name, points in registered(GROUP).items()
        if distribution is None or any(distribution_of(point) == distribution for point in points)
    )


def stage_distribution(use: str) -> str:
    """The distribution that provides a stage. Raises UserError if there is no such stage."""
    return distribution_of(_entry_point(use))


@functools.cache
def find_stage(use: str) -> AnyStage:
    """The class of the stage that graphs call `use`.

    Raises UserError if no package provides it (or more than one does), EnvironmentProblem if the package that does
    cannot be imported or does not hold a stage.
    """
    point = _entry_point(use)
    provided = f"the stage `{use}` of {distribution_of(point)} ({point.value})"
    try:
        found = point.load()
    except Exception as error:
        place = place_in_stage(error)
        raise EnvironmentProblem(
            f"{provided} cannot be loaded: {type(error).__name__}: {error}{place and f' ({place})'}; {remedy(error)}",
            error_id="stage-broken",
        ) from error
    if not (isinstance(found, type) and issubclass(found, Stage | Source)):
        raise EnvironmentProblem(
            f"{provided} is no stage: expected a subclass of camgraph.pipeline.stage.Stage or Source",
            error_id="stage-broken",
        )
    if why := _undeclared(found):
        raise EnvironmentProblem(f"{provided} {why}", error_id="stage-broken")
    return found


def _undeclared(kind: AnyStage) -> str:
    """Why a stage of this class cannot be used in a graph, by what the class declares; "" if it can."""
    return _wrong_settings(kind) or _wrong_messages(kind) or _missing_methods(kind) or _wrong_init(kind)


def _wrong_init(kind: AnyStage) -> str:
    """Why the runtime cannot make the stage: the failure of that call would seem to be one of the runtime."""
    given = ("settings", "context") if issubclass(kind, Stage) else ("settings", "camera", "camera_settings", "context")
    try:
        signature(kind).bind(*given)
    except TypeError as error:
        return f"has an `__init__` that does not fit ({error}): expected `__init__(self, {', '.join(given)})`"
    return ""


def _missing_methods(kind: AnyStage) -> str:
    """A stage is no ABC, so Python would call the empty method of the base: a sink would lose events without a word."""
    missing = [name for name in dir(kind) if getattr(getattr(kind, name, None), "__isabstractmethod__", False)]
    if issubclass(kind, Stage) and kind.process is Stage.process and not kind.added_by_itself:
        missing.append("process")
    if issubclass(kind, Source) and kind.frames is Source.frames:
        missing.append("frames")
    return f"does not define {' and '.join(f'`{name}`' for name in missing)}" if missing else ""


def _wrong_settings(kind: AnyStage) -> str:
    """Why no settings can fit the class. A type checker reads `Stage[...]`, but the program only `settings_type`."""
    declared: Any = kind.settings_type
    of_bases = [vars(base).get("settings_type") for base in kind.__mro__[1:]]
    for needed in (Settings, *(own for own in of_bases if isinstance(own, type))):
        if not (isinstance(declared, type) and issubclass(declared, needed)):
            expected = f"expected a subclass of {needed.__module__}.{needed.__name__}"
            return f"declares `settings_type = {_shown(declared)}`: {expected}"
    for base in vars(kind).get("__orig_bases__", ()):
        for named in get_args(base):
            if isinstance(named, type) and issubclass(named, Settings) and not issubclass(declared, named):
                return f"takes {_shown(named)}, and does not say so: expected `settings_type = {_shown(named)}`"
    return ""


def _wrong_messages(kind: AnyStage) -> str:
    """Why the edges of a graph cannot be checked with the types that a stage declares."""
    outputs: object = kind.outputs
    if not (isinstance(outputs, tuple) and all(map(_is_message_type, outputs))):
        return f"declares `outputs = {_shown(outputs)}`: expected a tuple of message types, such as `(Frame,)`"
    if issubclass(kind, Source):
        return ""
    inputs: object = getattr(kind, "inputs", None)  # declared without a value: each stage gives its own
    if inputs is None:
        return "does not say what it takes: expected a class attribute `inputs`"
    ports = inputs.values() if isinstance(inputs, Mapping) else [inputs]
    if not ports or not all(map(_is_message_type, ports)):
        return f"declares `inputs = {_shown(inputs)}`: expected a message type, or port -> message type of a join"
    return ""


def _is_message_type(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Message)


def _shown(value: object) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)


def _entry_point(use: str) -> EntryPoint:
    points = registered(GROUP).get(use, ())
    if not points:
        raise UserError(
            f"no stage is called `{use}`{did_you_mean(use, stage_names()) or '; see `camgraph stages`'}",
            error_id="stage-unknown",
        )
    if len(points) > 1:
        owners = " and ".join(sorted(distribution_of(point) for point in points))
        raise UserError(f"the stage `{use}` is provided by {owners}: uninstall one of them", error_id="stage-broken")
    return points[0]
