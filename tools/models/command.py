"""`camgraph model`: look into models, make lighter ones, and compare them."""

from __future__ import annotations

import logging
from pathlib import Path

import click
import structlog

from pipeline.errors import UserError
from stages.inference.model_files import find_model
from tools.models.bench_command import bench
from tools.models.compare_command import compare
from tools.models.export_command import export
from tools.models.picture_size import stated_sides
from tools.models.prepare_command import prepare
from tools.models.profile_command import profile_model
from tools.models.provider_names import provider_names


@click.group()
def model() -> None:
    """Look into models, make lighter ones, and compare them."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))


@model.command()
@click.argument("file")
@click.option("--size", metavar="WIDTHxHEIGHT", help="Of the picture for which operations are counted.")
@click.option(
    "--providers", default="cpu", show_default=True, help="Who may run it, the best first, with commas: cuda,cpu."
)
def inspect(file: str, size: str | None, providers: str) -> None:
    """Say what the model FILE (or asset:NAME) is: inputs, outputs, operators, work, and what camgraph takes it for."""
    # With them comes ONNX Runtime.
    from tools.models import inspection  # noqa: PLC0415

    path = find_model(file, Path.cwd())
    found = inspection.inspect(path, stated_sides(size))
    click.echo("\n".join(inspection.lines(found)))
    click.echo()
    click.echo("\n".join(inspection.placement_lines(inspection.open_on(path, provider_names(providers)))))


head_option = click.option(
    "--float-head",
    type=click.IntRange(0, 50),
    default=1,
    show_default=True,
    help="Nodes with fewer convolutions than this behind them stay in float.",
)
out_argument = click.argument("out", type=click.Path(path_type=Path, dir_okay=False))


@model.command()
@click.argument("file")
@out_argument
def fp16(file: str, out: Path) -> None:
    """Write the model FILE to OUT with weights and arithmetic in float16: half the size; faster on GPUs alone."""
    from tools.models import lighter  # noqa: PLC0415 - with it comes onnx

    lighter.halve(find_model(file, Path.cwd()), out)
    click.echo(f"written: {out}  {out.stat().st_size / 1e6:.1f} MB")


@model.command()
@click.argument("file")
@out_argument
@click.option("--frames", "sources", multiple=True, help="What it is calibrated on: videos or pictures; repeatable.")
@click.option(
    "--count",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Frames of all of these together, spread over them.",
)
@click.option("--dynamic", is_flag=True, help="Ranges are found in each run: no frames are needed, and it is slower.")
@head_option
def quantize(file: str, out: Path, *, sources: tuple[str, ...], count: int, dynamic: bool, float_head: int) -> None:
    """Write the model FILE to OUT in eight bits: a third of the size, faster on CPUs with VNNI, less exact.

    Look with `camgraph model compare` at what was lost.
    """
    from tools.models import chain, lighter  # noqa: PLC0415 - with them comes ONNX Runtime

    path = find_model(file, Path.cwd())
    if dynamic == bool(sources):
        raise UserError("expected --frames with what your cameras see, or --dynamic, and not both")
    if dynamic:
        kept = lighter.quantize_dynamic(path, out, float_head=float_head)
    else:
        kept = lighter.quantize(path, out, chain.model_inputs(path, sources, count), float_head=float_head)
    click.echo(f"written: {out}  {out.stat().st_size / 1e6:.1f} MB; {kept} nodes of the head stay in float")


model.add_command(bench)
model.add_command(profile_model)
model.add_command(prepare)
model.add_command(compare)
model.add_command(export)
