"""The options for declarations about a model, the same for all commands of `camgraph model`.

one model        --format yolo_pose --size 640x384
several models   --format yolo_pose                                     of all of them
                 --format first.onnx=yolox --order second.onnx=bgr      of one, over those for all
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from camgraph.pipeline.errors import UserError

if TYPE_CHECKING:
    from camgraph.tools.models.declaration import Declaration, DeclaredModel

Command = TypeVar("Command", bound=Callable[..., Any])
Said = tuple[str | None, Any]
"""(FILE, or None for all, value)"""
Triple = tuple[float, float, float]
_SIZE_NAMES = ("--size", "--picture-size", "size")
_SIDES = range(16, 8193)
"""The pictures of `preprocess`."""


class FormatName(click.ParamType[str]):
    """One of the formats that camgraph knows."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from camgraph.stages.vision.recognition import FORMATS  # noqa: PLC0415 - with it comes numpy

        if value not in FORMATS:
            raise UserError(f"--format {value}: expected one of {', '.join(FORMATS)}", error_id="option-value")
        return str(value)


def sides(text: str) -> tuple[int, int]:
    """Read WIDTHxHEIGHT as (width, height) in pixels. Raises UserError if it is none."""
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) in _SIDES and int(height) in _SIDES):
        raise UserError(
            f"--size {text}: expected WIDTHxHEIGHT, such as 640x480, with sides of {_SIDES[0]} to {_SIDES[-1]}",
            error_id="option-value",
        )
    return int(width), int(height)


class PictureSize(click.ParamType[tuple[int, int]]):
    """WIDTHxHEIGHT -> (width, height)."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        return sides(value)


class Factor(click.ParamType[float]):
    """A number above 0, or one over another: 1/255."""

    name = "factor"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        over, slash, under = str(value).partition("/")
        try:
            factor = float(over) / float(under if slash else 1)
        except (ValueError, ZeroDivisionError):
            factor = 0.0
        if not 0 < factor < inf:
            raise UserError(f"--scale {value}: expected a number above 0, such as 1/255", error_id="option-value")
        return factor


class Channels(click.ParamType[Triple]):
    """A number of each of three channels."""

    name = "channels"

    def __init__(self, *, divide: bool) -> None:
        self._divide = divide

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Triple:
        option = "--std" if self._divide else "--mean"
        try:
            one, two, three = map(float, str(value).split(","))
        except ValueError:
            raise UserError(
                f"{option} {value}: expected three numbers with commas, such as 0.485,0.456,0.406",
                error_id="option-value",
            ) from None
        if not all(map(isfinite, (one, two, three))):
            raise UserError(f"{option} {value}: expected three finite numbers", error_id="option-value")
        if self._divide and 0 in (one, two, three):
            raise UserError(f"{option} {value}: a channel cannot be divided by 0", error_id="option-value")
        return one, two, three


class OfModels(click.ParamType[Said]):
    """VALUE of all models, or FILE=VALUE of one -> `Said`."""

    def __init__(self, of_one: click.ParamType[Any]) -> None:
        self.name = of_one.name
        self._of_one = of_one

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Said:
        file, _, text = value.rpartition("=")
        return file or None, self._of_one.convert(text, param, ctx)


class Names(click.ParamType[tuple[str, ...]]):
    """Names with commas between them."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        return tuple(name for name in map(str.strip, str(value).split(",")) if name)


@dataclass(frozen=True)
class _Option:
    kind: click.ParamType[Any]
    shown: str
    help: str


_KIND: Mapping[str, _Option] = {
    "format": _Option(
        FormatName(), "FORMAT", "Its format, if camgraph does not recognise it: as `format` of the stage `decode`."
    ),
    "keypoints": _Option(click.IntRange(0, 1000), "K", "How many a person has, if camgraph does not see it."),
    "outputs": _Option(Names(), "A,B", "The outputs that camgraph shall read, if it has others too."),
    "layout": _Option(
        click.Choice(["nchw", "nhwc"]), "nchw|nhwc", "The layout of its input, if the file does not show it."
    ),
    "order": _Option(
        click.Choice(["rgb", "bgr"]), "rgb|bgr", "The order of its channels, if camgraph does not know it."
    ),
    "scale": _Option(Factor(), "FACTOR", "Its value of a pixel is pixel * FACTOR, such as 1/255."),
    "mean": _Option(
        Channels(divide=False), "A,B,C", "Subtracted from the scaled values of each channel, in the model's order."
    ),
    "std": _Option(Channels(divide=True), "A,B,C", "By which the rest is divided then."),
}
_SIZE = _Option(PictureSize(), "WIDTHxHEIGHT", "The size of its pictures, if it takes any size.")


def says_what_it_is(command: Command) -> Command:
    """The options of a command for one model. `declaration` reads them. `prepare` has no size: it makes no pictures."""
    for name, one in reversed(list(_KIND.items())):
        command = click.option(f"--{name}", type=one.kind, metavar=one.shown, help=one.help)(command)
    return command


def says_its_size(command: Command) -> Command:
    """The option of a command that makes pictures for one model."""
    return click.option(*_SIZE_NAMES, type=_SIZE.kind, metavar=_SIZE.shown, help=_SIZE.help)(command)


def brings_operators(command: Command) -> Command:
    """The option of a command that runs models, for those with operators that ONNX Runtime does not know."""
    return click.option(
        "--custom-ops",
        multiple=True,
        metavar="LIBRARY",
        help="A shared library with operators of its own; its code is run; repeatable.",
    )(command)


def says_what_they_are(command: Command) -> Command:
    """The same options of a command for several models, which `declared_models` reads."""
    for names, one in [*(((f"--{name}",), one) for name, one in _KIND.items()), (_SIZE_NAMES, _SIZE)][::-1]:
        shown = f"[FILE=]{one.shown}"
        command = click.option(*names, type=OfModels(one.kind), multiple=True, metavar=shown, help=one.help)(command)
    return command


def declaration(options: Mapping[str, Any]) -> Declaration:
    """The declarations in the options of one model, without those for other models."""
    from camgraph.stages.people.inference.contracts import InputSettings  # noqa: PLC0415
    from camgraph.stages.people.inference.model.model_files import find_libraries  # noqa: PLC0415
    from camgraph.stages.vision.recognition import Declared  # noqa: PLC0415
    from camgraph.tools.models.declaration import Declaration  # noqa: PLC0415

    said_input = {name: options[name] for name in InputSettings.model_fields}
    kind = Declared(options["format"], options["keypoints"], outputs=options["outputs"] or None)
    libraries = find_libraries(options.get("custom_ops", ()), Path.cwd())
    return Declaration(kind, InputSettings.model_validate(said_input), options.get("size"), libraries)


def declared_models(files: Sequence[str], options: Mapping[str, Any]) -> list[DeclaredModel]:
    """The models and the declarations about each. Raises UserError if there is no such model."""
    from camgraph.stages.people.inference.model.model_files import find_model  # noqa: PLC0415
    from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415

    given = {name: options[name] for name in (*_KIND, "size")}
    for name, values in given.items():
        _check_files(name, values, files)

    def of_one(file: str) -> Declaration:
        return declaration({**options, **{name: _of(file, given[name]) for name in given}})

    return [DeclaredModel(find_model(file, Path.cwd()), of_one(file)) for file in files]


def _check_files(name: str, values: Sequence[Said], files: Sequence[str]) -> None:
    """Raise UserError if an option names a model that is not compared."""
    for file, _ in values:
        if file is not None and file not in files:
            raise UserError(
                f"--{name} {file}=...: there is no such model here; expected one of {', '.join(files)}",
                error_id="model-missing",
            )


def _of(file: str, values: Sequence[Said]) -> Any:
    """The declaration about this model, the last one if there are two; None if there is none."""
    own = [value for about, value in values if about == file]
    return next(reversed(own or [value for about, value in values if about is None]), None)
