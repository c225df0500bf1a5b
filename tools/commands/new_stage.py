"""`camgraph stages new`: writes the package of a new stage, sink or source, which works and passes its own test."""

from __future__ import annotations

import keyword
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from string import Template

import click

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.registry import stage_distribution, stage_names
from camgraph.pipeline.system.names import MAX_NAME
from camgraph.tools.commands.local_path import LocalPath
from camgraph.tools.commands.stage_skeleton import SKELETONS

_A_NAME = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED = ("new", "events", "outbox")


@click.command("new")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(tuple(SKELETONS)),
    default="stage",
    show_default=True,
    help="A stage that makes events of frames, a sink that delivers events, or a source that makes frames.",
)
@click.option(
    "--into",
    type=LocalPath(),
    default=Path(),
    help="The folder in which the package gets its own folder; by default the current one.",
)
def new(name: str, kind: str, into: Path) -> None:
    """Write a package with the stage NAME: the stage, its test, a graph that uses it, a README.

    Pages: `camgraph help write_a_stage`, `camgraph help write_a_sink`, `camgraph help write_a_source`.
    """
    _require_free(name)
    folder = into / folder_of(name)
    _write(folder, skeleton_of(name, kind))
    click.echo(f"{folder}: a package with the {kind} `{name}`. Next:")
    click.echo(f"  cd {shlex.quote(str(folder))} && python -m pip install -e '.[dev]' && python -m pytest")


def folder_of(name: str) -> str:
    """The folder of the package, named as in pip."""
    return f"camgraph-{name.replace('_', '-')}"


def skeleton_of(name: str, kind: str) -> dict[str, str]:
    """Path within the folder -> text, of all files of the package."""
    words = name.split("_")
    values = {
        "name": name,
        "Name": "".join(word.capitalize() for word in words),
        "folder": folder_of(name),
        "package": f"camgraph_{name}",
    }
    return {
        Template(path).substitute(values): Template(text).substitute(values) for path, text in SKELETONS[kind].items()
    }


def _require_free(name: str) -> None:
    """Raises UserError if no stage can have this name."""
    if len(name) > MAX_NAME or not _A_NAME.fullmatch(name) or keyword.iskeyword(name):
        near = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")[:MAX_NAME]
        hint = f", such as `{near}`" if _A_NAME.fullmatch(near) and not keyword.iskeyword(near) else ""
        raise UserError(
            f"{name!r} cannot be the name of a stage: expected a small letter, then small letters, digits and `_`, "
            f"at most {MAX_NAME} characters and no word of Python's own{hint}",
            error_id="name-not-allowed",
        )
    if name in _RESERVED:
        raise UserError(
            f"`{name}` cannot be the name of a stage: it means something else to camgraph; choose another",
            error_id="name-not-allowed",
        )
    if name in stage_names():
        raise UserError(
            f"there is a stage `{name}` already, of {stage_distribution(name)}: choose another name",
            error_id="file-exists",
        )


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Raises UserError if the folder is there, EnvironmentProblem if it cannot be written."""
    if folder.exists():
        raise UserError(
            f"{folder} is there already: remove it, choose another name, or another folder with --into",
            error_id="file-exists",
        )
    try:
        for path, text in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvironmentProblem(
            f"{folder}: cannot be written: {error.strerror or error}", error_id="cannot-write"
        ) from error
