"""`camgraph model export`: says how, and does nothing itself."""

from __future__ import annotations

import click

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.tools.models.convert.export_recipes import EXAMPLES, Wanted, family_of, fitting_sizes, recipe, stride_of
from camgraph.tools.models.declaration_options import sides


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
        known = f"{', '.join(EXAMPLES)}, or a file of weights so named"
        raise UserError(
            f"{model}: there is no recipe for it; known are {known}"
            f"{did_you_mean(Wanted(model).stem.lower(), EXAMPLES)}",
            error_id="name-unknown",
        )
    click.echo("\n".join(recipe(Wanted(model, _fitting(sides(size), model), half, nms), family)))


def _fitting(size: tuple[int, int], model: str) -> tuple[int, int]:
    """The size. Raises UserError if the model takes none like it."""
    stride = stride_of(model)
    fitting = fitting_sizes(size, stride)
    if size not in fitting:
        nearest = ", ".join(f"{width}x{height}" for width, height in fitting)
        raise UserError(
            f"--size {size[0]}x{size[1]}: {model} takes sides that are multiples of {stride}: {nearest}",
            error_id="option-value",
        )
    return size
