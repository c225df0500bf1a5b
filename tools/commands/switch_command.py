"""The command `switch`: turns a switch of a running graph on or off."""

from __future__ import annotations

from typing import Any

import click

from camgraph.pipeline.supervision.control_client import ask, find_run
from camgraph.tools.commands.run_options import name_option


@click.command("switch")
@click.argument("switch", required=False)
@click.argument("state", required=False, type=click.Choice(["on", "off"]))
@name_option
def switch_command(switch: str | None, state: str | None, name: str | None) -> None:
    """Turn SWITCH on or off. Without a STATE, show it; without a name, show all.

    Rules name their switches under `switches`, and wait for them with `while`.
    """
    asked: dict[str, Any] = {} if switch is None else {"switch": switch}
    if state is not None:
        asked["on"] = state == "on"
    for one, on in ask(find_run(name), "switch", **asked)["switches"].items():
        click.echo(f"{one} is {'on' if on else 'off'}")
