"""`camgraph service`: a graph as a service of systemd, which starts at boot and is restarted after a failure."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph import Graph, load_graph
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.graph.secret_files import secret_file
from camgraph.tools.commands.env_file_option import env_file_option, show_remarks
from camgraph.tools.commands.hosting import needs
from camgraph.tools.commands.hosting.installation import Machine, systemd_version
from camgraph.tools.commands.hosting.unit import ACCOUNT, UnitSettings, unit_name, unit_text
from camgraph.tools.commands.local_path import LocalPath

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,29}")
"""Shorter than other names: the folder /run/camgraph-NAME is part of the address of sockets."""
_SECRET = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_GPUS = (Path("/dev/nvidia0"), Path("/dev/dri"))

root_option = click.option(
    "--root",
    type=LocalPath(file_okay=False, exists=True),
    default=Path("/"),
    help="The folder of a machine's image to write to, instead of this machine.",
)


@click.group("service")
def service() -> None:
    """Make GRAPH a service of systemd: it starts at boot, in a sandbox, and is restarted if it fails."""


@service.command("install")
@click.argument("graph_file", metavar="GRAPH", type=LocalPath())
@click.option("--name", help="The name of the service and its run; by default the graph's.")
@click.option("--user", default=ACCOUNT, show_default=True, help="The user that it runs as.")
@env_file_option("NAME=VALUE lines for `${NAME}` in GRAPH. Only root needs to be able to read FILE.")
@click.option(
    "--secret", "secrets", multiple=True, metavar="NAME=FILE", help="The file of `${secret:NAME}` in GRAPH, as above."
)
@click.option("--gpu", is_flag=True, help="Let it use the GPUs of this machine.")
@click.option("--dry-run", is_flag=True, help="Print the unit, and on the standard error all warnings; write nothing.")
@root_option
def install(  # noqa: PLR0917 - one for each option of the command
    graph_file: Path,
    name: str | None,
    user: str,
    env_files: tuple[Path, ...],
    secrets: tuple[str, ...],
    root: Path,
    *,
    gpu: bool,
    dry_run: bool,
) -> None:
    """Write a unit of systemd that runs GRAPH, and say what to type next.

    The service may write only the folders that the graph's sinks name, and camgraph's own below /var/lib, /var/cache
    and /run. A second call replaces the unit if it is still as camgraph wrote it.
    """
    machine, files = Machine(root), _files(secrets)
    if not dry_run:
        machine.require_fit(shlex.join([*needs.program(), *sys.argv[1:]]))
    graph = _loaded(graph_file, name, env_files, files)
    name = _checked_name(graph.name)
    settings = UnitSettings(
        name=name,
        graph=graph_file.absolute(),
        program=needs.program(),
        user=user,
        writes=tuple(needs.written_folders(graph)),
        env_files=tuple(file.absolute() for file in env_files),
        secrets=files,
        gpu=gpu,
        video_devices=needs.uses_video_devices(graph),
        jit=needs.makes_machine_code(),
        live=needs.is_live(graph),
        can_reload=not graph.in_process,
        systemd=systemd_version(),
        sees_home=needs.in_home(graph_file.absolute(), *needs.interpreter(), *needs.written_folders(graph)),
    )
    if dry_run:
        click.echo(unit_text(settings), nl=False)
        for line in _warnings(machine, settings):
            click.echo(line, err=True)
        return
    _install(machine, settings)
    for file in machine.copied_assets(needs.assets(graph)):
        click.echo(f"{file}: copied for the service")
    click.echo("next, as root:")
    for line in _next(settings, needs.Account.named(settings.user)):
        click.echo(f"  {line}")


def _install(machine: Machine, settings: UnitSettings) -> None:
    _require_account(machine, settings)
    is_new = machine.written(settings.name, unit_text(settings))
    if settings.user == ACCOUNT:
        machine.make_account()
    machine.load_units()
    file = machine.unit_file(settings.name)
    click.echo(f"{file}: {'written' if is_new else 'is there already, with the same content'}")
    for line in _remarks(settings):
        click.echo(line)


def _require_account(machine: Machine, settings: UnitSettings) -> None:
    """Raises UserError if the service could not run as its user on this machine."""
    account = needs.Account.named(settings.user)
    if not machine.is_this:
        return
    if account.uid is None and settings.user != ACCOUNT:
        raise UserError(
            f"there is no user {settings.user}; leave out --user, and camgraph makes one", error_id="name-unknown"
        )
    needs.require_usable(settings.graph, account)


def _warnings(machine: Machine, settings: UnitSettings) -> Iterator[str]:
    """What an installation would say beside its unit: why it would be refused, its remarks, what is left to do."""
    try:
        _require_account(machine, settings)
    except UserError as error:
        yield f"would be refused: {error}"
    yield from _remarks(settings)
    for line in needs.next_to_do(list(settings.writes), needs.Account.named(settings.user)):
        yield f"as root, before it is started: {line}"


def _remarks(settings: UnitSettings) -> Iterator[str]:
    folders = list(settings.writes)
    yield f"it runs as {settings.user}, and writes {', '.join(map(str, folders)) or 'nothing outside of its state'}"
    for folder in needs.in_private_folders(folders):
        yield f"{folder}: a service has a /tmp of its own, which is empty after each start: name another folder"
    if not settings.gpu and any(gpu.exists() for gpu in _GPUS):
        yield "it does not see the GPUs of this machine; --gpu lets it use them"
    if not settings.live:
        yield "the graph reads files: the service ends with them, and is not restarted"


def _next(settings: UnitSettings, account: needs.Account) -> Iterator[str]:
    unit = unit_name(settings.name)
    yield from needs.next_to_do(list(settings.writes), account)
    yield f"systemctl enable --now {unit}"
    yield f"systemctl status {unit}            # how it is; the log: journalctl -u {unit}"


@service.command("uninstall")
@click.argument("name")
@root_option
def uninstall(name: str, root: Path) -> None:
    """Stop the service NAME, and remove its unit. Its state, models and outputs stay."""
    machine = Machine(root)
    machine.require_fit(shlex.join([*needs.program(), *sys.argv[1:]]))
    _checked_name(name)
    machine.remove(name)
    click.echo(f"{machine.unit_file(name)}: removed")
    click.echo(f"its events that wait are still in /var/lib/camgraph/{name}, and models in /var/cache/camgraph")


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UserError(
            f"a service cannot be called {name!r:.60}: expected at most 30 letters, digits, `_` and `-`; give --name",
            error_id="name-not-allowed",
        )
    return name


def _loaded(graph_file: Path, name: str | None, env_files: tuple[Path, ...], files: Mapping[str, Path]) -> Graph:
    """Raises GraphError with all mistakes; secrets are read from the files that the service will read."""
    secrets = {name: secret_file(str(file)) for name, file in files.items()}
    if problems := [found.problem for found in secrets.values() if found.problem]:
        raise UserError("\n".join(problems), error_id="service-unit")
    values = {name: found.value for name, found in secrets.items()}
    environ, remarks = Variables(env_files, {**os.environ, **values}).anew()
    graph = load_graph(graph_file, name=name, environ=environ, strict=True)
    show_remarks([*remarks, *graph.source.remarks])
    return graph


def _files(secrets: tuple[str, ...]) -> dict[str, Path]:
    found = {}
    for given in secrets:
        name, separator, file = given.partition("=")
        if not separator or not _SECRET.fullmatch(name) or not file:
            raise UserError(
                f"--secret {given!r:.100}: expected NAME=FILE, such as door=/etc/camgraph/door.password",
                error_id="service-unit",
            )
        found[name] = Path(file).absolute()
    return found
