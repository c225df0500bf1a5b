"""`camgraph model export`: says how, and does nothing itself."""

from __future__ import annotations

import click

from pipeline.errors import UserError
from tools.models.export_recipes import KNOWN, Wanted, family_of, recipe
from tools.models.picture_size import sides


@click.command()
@click.argument("model")
@click.option("--size", metavar="WIDTHxHEIGHT", default="640x640", show_default=True, help="Of its pictures.")
@click.option("--half", is_flag=True, help="With the step to half precision, for GPUs.")
@click.option("--nms", is_flag=True, help="With the suppression of overlaps in the graph.")
def export(model: str, size: str, *, half: bool, nms: bool) -> None:
    """Print how MODEL (such as yolo11n-pose, or your weights best-yolo11.pt) becomes an ONNX file for camgraph.

    Nothing is installed or run: exporters belong to others, with licences of their own, and to an environment of yours.
    """
    family = family_of(model)
    if family is None:
        raise UserError(f"{model}: there is no recipe for it; known are {KNOWN}")
    click.echo("\n".join(recipe(Wanted(model, sides(size), half, nms), family)))
