"""`camgraph model prepare`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from camgraph.stages.people.inference.model.model_files import find_model
from camgraph.tools.models.declaration_options import declaration, says_what_it_is
from camgraph.tools.models.model_options import writes_a_model


@click.command()
@click.argument("file")
@writes_a_model
@says_what_it_is
def prepare(file: str, out: Path, *, overwrite: bool, **options: Any) -> None:
    """Write the model FILE to OUT so that it takes uint8 RGB pictures as they are.

    A graph needs no setting for it, finds the same people, and carries a quarter of the bytes to the device.
    """
    from camgraph.tools.models.convert import model_output, preparation  # noqa: PLC0415

    path = find_model(file, Path.cwd())
    model_output.check_out(path, out, overwrite=overwrite)
    remarks = preparation.prepare(path, out, declaration(options))
    click.echo("\n".join(preparation.prepared_lines(out, remarks)))
