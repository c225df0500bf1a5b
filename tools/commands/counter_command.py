"""The command `counter`: shows the counters of a running graph, and sets them to zero."""

from __future__ import annotations

from typing import Any

import click

from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.supervision.control_client import ask, find_run
from camgraph.pipeline.system.names import nfc
from camgraph.tools.commands.run_options import name_option
from camgraph.tools.display.status_view import counter_text


@click.command("counter")
@click.argument("counter", required=False)
@click.argument("action", required=False, type=click.Choice(["reset"]))
@click.option("--camera", help="Of this camera alone.")
@name_option
def counter_command(counter: str | None, action: str | None, camera: str | None, name: str | None) -> None:
    """Show the counters of each camera, or only COUNTER; `reset` sets it to zero.

    Rules name their counters under `counters`. A reset happens at the next frame of the camera.
    """
    asked: dict[str, Any] = {"reset": counter} if action else {}
    if camera is not None:
        camera = asked["camera"] = nfc(camera)
    cameras = ask(find_run(name), "counter", **asked)["counters"]
    if action:
        which = f"the camera {shown(camera)}" if camera is not None else "each camera"
        click.echo(f"{shown(str(counter))} begins at zero with the next frame of {which}")
        return
    lines = [
        f"{shown(one)}: {shown(key)} {counter_text(numbers)}"
        for one, counters in cameras.items()
        for key, numbers in counters.items()
        if camera in (None, one) and counter in (None, key)
    ]
    click.echo("\n".join(lines) or "nothing is counted: rules name their counters under `counters`")
