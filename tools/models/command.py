"""`camgraph model`: look into models, make lighter ones, and compare them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.model.model_files import find_model
from camgraph.tools.models.bench.command import bench
from camgraph.tools.models.compare.command import compare
from camgraph.tools.models.convert.export_command import export
from camgraph.tools.models.convert.prepare_command import prepare
from camgraph.tools.models.declaration_options import brings_operators, declaration, says_its_size, says_what_it_is
from camgraph.tools.models.model_options import provider_names, writes_a_model
from camgraph.tools.models.profile.command import profile_model
from camgraph.tools.models.saved import check_places, save

if TYPE_CHECKING:
    from camgraph.stages.people.inference.selection.automatic import Choice
    from camgraph.tools.models.declaration import DeclaredModel


@click.group()
def model() -> None:
    """Look into models, make lighter ones, and compare them."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))


@model.command()
@click.argument("file")
@says_its_size
@says_what_it_is
@brings_operators
@click.option(
    "--providers",
    default="cpu",
    show_default=True,
    help="Who may run it, the best first, with commas: cuda,cpu. Or auto: each that is here is tried.",
)
@click.option("--json", "saved", type=click.Path(path_type=Path, dir_okay=False), help="Save it here as well.")
def inspect(file: str, providers: str, saved: Path | None, **options: Any) -> None:
    """Describe the model FILE (or asset:NAME): inputs, outputs, operators, work, and how camgraph reads it."""
    # With them comes ONNX Runtime.
    from camgraph.stages.people.inference.selection.automatic import Choice  # noqa: PLC0415
    from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415
    from camgraph.tools.models.inspect import inspection  # noqa: PLC0415
    from camgraph.tools.models.inspect import record as inspection_record  # noqa: PLC0415

    check_places([saved])

    path = find_model(file, Path.cwd())
    model = DeclaredModel(path, declaration(options))
    names = () if providers == "auto" else provider_names(providers)
    found = inspection.inspect(model)
    click.echo("\n".join(inspection.lines(found)))
    choice, running = Choice(names, {}), None
    if not found.too_large:
        click.echo()
        choice = choice if names else _automatic(model)
        running = inspection.open_on(model, choice.providers)
        click.echo("\n".join(inspection.placement_lines(running, found.work)))
    if saved is not None:
        save(saved, inspection_record.as_json(found, running, choice.passed_over))


def _automatic(model: DeclaredModel) -> Choice:
    """The providers of `auto`; logs the reasons."""
    from camgraph.tools.models import automatic_choice  # noqa: PLC0415

    choice = automatic_choice.chosen(model)
    click.echo("\n".join(automatic_choice.lines(choice)))
    return choice


head_option = click.option(
    "--float-head",
    type=click.IntRange(0, 50),
    default=1,
    show_default=True,
    help="Nodes with fewer convolutions than this behind them stay in float.",
)


@model.command()
@click.argument("file")
@writes_a_model
def fp16(file: str, out: Path, *, overwrite: bool) -> None:
    """Write the model FILE to OUT with weights and arithmetic in float16: half the size; faster on GPUs alone."""
    from camgraph.tools.models.convert import lighter, model_output  # noqa: PLC0415

    path = find_model(file, Path.cwd())
    model_output.check_out(path, out, overwrite=overwrite)
    lighter.halve(path, out)
    click.echo(f"written: {out}  {out.stat().st_size / 1e6:.1f} MB")


@model.command()
@click.argument("file")
@writes_a_model
@click.option("--frames", "sources", multiple=True, help="Videos or pictures for the calibration; repeatable.")
@click.option(
    "--count",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Frames of all of these together, spread over them.",
)
@click.option("--dynamic", is_flag=True, help="Ranges are found in each run: no frames are needed, and it is slower.")
@head_option
@says_its_size
@says_what_it_is
def quantize(
    file: str,
    out: Path,
    *,
    overwrite: bool,
    sources: tuple[str, ...],
    count: int,
    dynamic: bool,
    float_head: int,
    **options: Any,
) -> None:
    """Write the model FILE to OUT in eight bits: a third of the size, faster on CPUs with VNNI, less exact.

    Use `camgraph model compare` to see the losses.
    """
    from camgraph.tools.models import chain  # noqa: PLC0415 - with them comes ONNX Runtime
    from camgraph.tools.models.convert import lighter, model_output  # noqa: PLC0415
    from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415

    path = find_model(file, Path.cwd())
    if dynamic == bool(sources):
        raise UserError(
            "expected --frames with frames of your cameras, or --dynamic, but not both", error_id="option-value"
        )
    model_output.check_out(path, out, overwrite=overwrite)
    if dynamic:
        kept = lighter.quantize_dynamic(path, out, float_head=float_head)
    else:
        inputs = chain.model_inputs(DeclaredModel(path, declaration(options)), sources, count)
        kept = lighter.quantize(path, out, inputs, float_head=float_head)
    click.echo(f"written: {out}  {out.stat().st_size / 1e6:.1f} MB; {kept} nodes of the head stay in float")


model.add_command(bench)
model.add_command(profile_model)
model.add_command(prepare)
model.add_command(compare)
model.add_command(export)
