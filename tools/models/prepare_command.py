"""`camgraph model prepare`: its options."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import UserError
from stages.inference.model_files import find_model

if TYPE_CHECKING:
    from tools.models.preparation import Asked

Triple = tuple[float, float, float]


@click.command()
@click.argument("file")
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--nms", is_flag=True, help="Suppress overlaps in the graph too: its output becomes rows of people.")
@click.option(
    "--min-score", type=click.FloatRange(0, 1, min_open=True), default=0.3, show_default=True, help="With --nms."
)
@click.option("--iou", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="With --nms.")
@click.option("--most", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Rows; with --nms.")
@click.option("--layout", type=click.Choice(["nchw", "nhwc"]), help="Of its input, where that does not show.")
@click.option("--order", type=click.Choice(["rgb", "bgr"]), help="Of its channels, where camgraph does not know it.")
@click.option("--scale", type=click.FloatRange(0, min_open=True), help="Its value of a pixel is pixel * scale.")
@click.option("--mean", metavar="A,B,C", help="Subtracted from the scaled values of each channel, in its order.")
@click.option("--std", metavar="A,B,C", help="By which they are divided then.")
@click.option("--format", help="What the model is, where camgraph does not see it (`decode` has the same setting).")
@click.option("--keypoints", type=click.IntRange(1, 1000), help="How many, where camgraph does not see it.")
def prepare(file: str, out: Path, **options: Any) -> None:
    """Write the model FILE to OUT so that it takes uint8 RGB pictures as they are, and with --nms gives rows of people.

    A graph needs no setting for it, finds the same people, and carries a quarter of the bytes to the device.
    """
    from tools.models import preparation  # noqa: PLC0415 - with it comes onnx

    told = preparation.prepare(find_model(file, Path.cwd()), out, _asked(options))
    click.echo("\n".join(preparation.prepared_lines(out, told)))


def _asked(options: dict[str, Any]) -> Asked:
    """What the options ask for. Raises UserError where one is none."""
    from stages.inference.contracts import InputSettings  # noqa: PLC0415
    from stages.vision.recognition import FORMATS, Stated  # noqa: PLC0415
    from tools.models.pixel_folding import Normalisation  # noqa: PLC0415
    from tools.models.preparation import Asked  # noqa: PLC0415
    from tools.models.suppression_folding import Suppression  # noqa: PLC0415

    if options["format"] not in (None, *FORMATS):
        raise UserError(f"--format {options['format']}: expected one of {', '.join(FORMATS)}")
    usual = Normalisation()
    normalisation = Normalisation(
        _three("--mean", options["mean"], usual.mean), _three("--std", options["std"], usual.std)
    )
    if 0 in normalisation.std:
        raise UserError(f"--std {options['std']}: a channel cannot be divided by 0")
    stated_input = {name: options[name] for name in ("layout", "order", "scale")}
    return Asked(
        Suppression(options["min_score"], options["iou"], options["most"]) if options["nms"] else None,
        normalisation,
        InputSettings.model_validate(stated_input),
        Stated(options["format"], options["keypoints"]),
    )


def _three(option: str, text: str | None, usual: Triple) -> Triple:
    if text is None:
        return usual
    try:
        red, green, blue = (float(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"{option} {text}: expected three numbers with commas, such as 0.485,0.456,0.406") from None
    if not all(map(isfinite, (red, green, blue))):
        raise UserError(f"{option} {text}: expected three finite numbers")
    return red, green, blue
