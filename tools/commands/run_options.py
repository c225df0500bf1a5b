"""Which run a command is for: `--name`, and `--user` of commands that root may send to a run of another user."""

from __future__ import annotations

import os

import click

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.names import user_name


def _number(_context: click.Context, _parameter: click.Parameter, user: str | None) -> int | None:
    if user is None:
        return None
    number = _number_of(user)
    if os.getuid() not in (0, number):
        raise UserError("only root may ask the runs of other users: leave out --user", error_id="option-value")
    return None if number == os.getuid() else number


def _number_of(user: str) -> int:
    import pwd  # noqa: PLC0415 - there is none on Windows

    try:
        return pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):
        pass
    if user.isascii() and user.isdecimal():
        return int(user)
    raise UserError(
        f"--user: no user of this machine is called {user[:60]!r}: expected a name or a number", error_id="option-value"
    )


def of_owner(owner: int | None) -> str:
    """` of cam (1000)` behind the name of a run of another user; "" for one of this user."""
    return f" of {user_name(owner)}" if owner is not None else ""


name_option = click.option("--name", help="The run; by default that of the graph in this folder, or the only one.")
owner_option = click.option(
    "--user",
    "owner",
    callback=_number,
    help="As root: the owner of the run. Without --user, only your own runs are asked.",
)
