"""`camgraph model prepare`: its options."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.model.model_files import find_model
from camgraph.tools.models.declaration_options import declaration, says_what_it_is
from camgraph.tools.models.model_options import writes_a_model

if TYPE_CHECKING:
    from camgraph.tools.models.convert.preparation import Asked

Triple = tuple[float, float, float]


@click.command()
@click.argument("file")
@writes_a_model
@click.option("--mean", metavar="A,B,C", help="Subtracted from the scaled values of each channel, in its order.")
@click.option("--std", metavar="A,B,C", help="By which they are divided then.")
@says_what_it_is
def prepare(file: str, out: Path, *, overwrite: bool, **options: Any) -> None:
    """Write the model FILE to OUT so that it takes uint8 RGB pictures as they are.

    A graph needs no setting for it, finds the same people, and carries a quarter of the bytes to the device.
    """
    from camgraph.tools.models.convert import model_output, preparation  # noqa: PLC0415

    path, asked = find_model(file, Path.cwd()), _asked(options)
    model_output.check_out(path, out, overwrite=overwrite)
    remarks = preparation.prepare(path, out, asked)
    click.echo("\n".join(preparation.prepared_lines(out, remarks)))


def _asked(options: dict[str, Any]) -> Asked:
    """The steps that the options request. Raises UserError if an option is wrong."""
    from camgraph.stages.people.inference.model.pixel_folding import Normalisation  # noqa: PLC0415
    from camgraph.tools.models.convert.preparation import Asked  # noqa: PLC0415

    usual = Normalisation()
    normalisation = Normalisation(
        _three("--mean", options["mean"], usual.mean), _three("--std", options["std"], usual.std)
    )
    if 0 in normalisation.std:
        raise UserError(f"--std {options['std']}: a channel cannot be divided by 0", error_id="option-value")
    return Asked(normalisation, declaration(options))


def _three(option: str, text: str | None, usual: Triple) -> Triple:
    if text is None:
        return usual
    try:
        red, green, blue = (float(part) for part in text.split(","))
    except ValueError:
        raise UserError(
            f"{option} {text}: expected three numbers with commas, such as 0.485,0.456,0.406", error_id="option-value"
        ) from None
    if not all(map(isfinite, (red, green, blue))):
        raise UserError(f"{option} {text}: expected three finite numbers", error_id="option-value")
    return red, green, blue
