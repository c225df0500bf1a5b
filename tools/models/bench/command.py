"""`camgraph model bench`: how fast a model is here, on which provider, with which batch and split of the cores."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from camgraph.pipeline.errors import EXIT_GAVE_UP, EXIT_SIGINT
from camgraph.tools.measuring.plots import require_matplotlib
from camgraph.tools.models.declaration_options import brings_operators, declaration, says_its_size, says_what_it_is
from camgraph.tools.models.model_options import FiniteRange, provider_names
from camgraph.tools.models.saved import check_places

if TYPE_CHECKING:
    from camgraph.stages.people.inference.engines.engine import ProviderName
    from camgraph.tools.models.bench.grid import Configuration
    from camgraph.tools.models.bench.machine import Watch
    from camgraph.tools.models.bench.pictures import Pictures
    from camgraph.tools.models.bench.record import Record
    from camgraph.tools.models.bench.rounds import Rounds
    from camgraph.tools.models.bench.worker import Job
    from camgraph.tools.models.declaration import DeclaredModel

_file = click.Path(path_type=Path, dir_okay=False)
_count = click.IntRange(1, 4096)


@click.command()
@click.argument("file")
@click.option("--providers", help="Which to try, with commas: cpu,openvino. By default all; those not here are named.")
@click.option(
    "--batch",
    "batches",
    multiple=True,
    type=_count,
    default=(1, 8),
    show_default=True,
    help="Pictures of one run; repeatable.",
)
@click.option("--workers", multiple=True, type=_count, help="Processes; repeatable.")
@click.option("--threads", multiple=True, type=_count, help="Runs at once in a process; repeatable.")
@click.option(
    "--intra-op",
    multiple=True,
    type=_count,
    help="Threads of one run; repeatable. Without any of these: ways to use all cores.",
)
@click.option("--precision", type=click.Choice(["f32", "bf16"]), default="f32", show_default=True, help="Of OpenVINO.")
@click.option("--frames", "sources", multiple=True, help="Videos or pictures to run it on; by default random ones.")
@says_its_size
@says_what_it_is
@brings_operators
@click.option("--seconds", type=FiniteRange(1, 36_000), default=60.0, show_default=True, help="Of measuring.")
@click.option("--rounds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Each through all of them.")
@click.option(
    "--open-seconds",
    type=FiniteRange(1, 36_000),
    default=300.0,
    show_default=True,
    help="The longest that opening may take.",
)
@click.option("--price-per-hour", type=FiniteRange(0, min_open=True), help="Of the machine, in any currency.")
@click.option("--json", "saved", type=_file, help="Save the run here.")
@click.option("--plot", "picture", type=_file, help="Draw it into this PNG file.")
@click.option("--against", type=_file, help="An earlier saved run: show the differences.")
@click.pass_context
def bench(ctx: click.Context, /, *, file: str, **options: Any) -> None:
    """Measure how fast the model FILE (or asset:NAME) runs here: providers x batches x splits of the cores.

    All configurations take turns, round after round. Ctrl-C shows the measurements so far. With a saved run (.json) as
    FILE nothing is measured: it is shown, drawn, or compared with another one.
    """
    from camgraph.tools.models.bench import record as bench_record  # noqa: PLC0415 - with them comes ONNX Runtime
    from camgraph.tools.models.bench import report as bench_report  # noqa: PLC0415

    if options["picture"]:
        require_matplotlib()
    check_places([options["saved"], options["picture"]])
    before = bench_record.read(options["against"]) if options["against"] else None
    record = bench_record.read(Path(file)) if file.endswith(".json") else _measured(file, options)
    if options["saved"]:
        bench_record.save(record, options["saved"])
    if before is None or not file.endswith(".json"):
        click.echo("\n".join(bench_report.lines(record, options["price_per_hour"])))
    if before is not None:
        _compare(before, record)
    if options["picture"] and record.measured:
        bench_report.plot(record, options["picture"])
    ctx.exit(EXIT_SIGINT if record.interrupted and not file.endswith(".json") else _status(record))


def _status(record: Record) -> int:
    return 0 if record.measured else EXIT_GAVE_UP


def _compare(before: Record, after: Record) -> None:
    from camgraph.tools.models.bench import comparison as bench_comparison  # noqa: PLC0415 - only where it is needed

    click.echo("\n".join(bench_comparison.lines(before, after)))


def _measured(file: str, options: dict[str, Any]) -> Record:
    from camgraph.stages.people.inference.model.model_files import find_model, sha256_of  # noqa: PLC0415
    from camgraph.stages.vision.foreign_text import shown  # noqa: PLC0415
    from camgraph.tools.models.bench import machine as bench_machine  # noqa: PLC0415
    from camgraph.tools.models.bench import pictures as bench_pictures  # noqa: PLC0415
    from camgraph.tools.models.bench import rounds as bench_rounds  # noqa: PLC0415
    from camgraph.tools.models.bench.record import Record  # noqa: PLC0415
    from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415

    model = find_model(file, Path.cwd())
    declared = DeclaredModel(model, declaration(options))
    pictures = bench_pictures.pictures_of(declared, options["sources"])
    watch = bench_machine.Watch()
    with tempfile.TemporaryDirectory() as folder:
        jobs = _jobs(declared, pictures, options, Path(folder))
        click.echo(f"{len(jobs)} configurations, {options['rounds']} rounds; opening them ...", err=True)
        plan = bench_rounds.Plan(jobs, options["rounds"], options["seconds"], options["open_seconds"])
        rounds = bench_rounds.Rounds(plan, lambda text: click.echo(shown(text), err=True))
        interrupted = _run(rounds, watch)
    return Record(
        at=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", model=model.name, sha256=sha256_of(model), size=pictures.size,
        pictures=pictures.source, precision=options["precision"], interrupted=interrupted, machine=watch.machine(),
        measured=tuple(rounds.measured()), left_out=tuple(rounds.left_out),
    )  # fmt: skip


def _run(rounds: Rounds, watch: Watch) -> bool:
    """Whether it was interrupted."""
    try:
        rounds.open()
        for number in rounds.run():
            watch.sample()
            click.echo(f"round {number} is over", err=True)
    except KeyboardInterrupt:
        return True
    finally:
        watch.sample()
        rounds.close()
    return False


def _jobs(model: DeclaredModel, pictures: Pictures, options: dict[str, Any], folder: Path) -> list[Job]:
    import numpy as np  # noqa: PLC0415

    from camgraph.pipeline.system.cores import usable_cores  # noqa: PLC0415
    from camgraph.stages.people.inference.selection.opening import Asked  # noqa: PLC0415
    from camgraph.tools.models.bench import grid as bench_grid  # noqa: PLC0415
    from camgraph.tools.models.bench import worker as bench_worker  # noqa: PLC0415

    np.save(folder / "pictures.npy", pictures.rows)

    def asked_of(one: Configuration) -> Asked:
        libraries, split = model.declaration.libraries, one.split
        precision = options["precision"]
        return Asked((one.provider,), split.intra_op, precision, libraries=libraries, at_once=split.threads)

    asked = options["workers"], options["threads"], options["intra_op"]
    cores = usable_cores()
    splits = bench_grid.declared_splits(*asked) if any(asked) else bench_grid.usual_splits(cores)
    batches = bench_grid.fitting_batches(options["batches"], pictures.contract.batch)
    return [
        bench_worker.Job(
            model.path, one, asked_of(one), pictures.contract.name, folder / "pictures.npy",
        )
        for one in bench_grid.grid(_providers(options["providers"]), batches, splits)
    ]  # fmt: skip


def _providers(text: str | None) -> Sequence[ProviderName]:
    """Those in a list with commas, or all. Raises UserError if there is no such provider."""
    from camgraph.stages.people.inference.engines.onnxruntime_engine import PROVIDERS  # noqa: PLC0415

    return provider_names(text) if text else list(PROVIDERS)
