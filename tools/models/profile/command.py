"""`camgraph model profile`: shows which nodes take the time of a run, by ONNX Runtime's own profile."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from camgraph.tools.measuring.plots import require_matplotlib
from camgraph.tools.models.declaration_options import brings_operators, declaration, says_its_size, says_what_it_is
from camgraph.tools.models.model_options import FiniteRange, provider_names
from camgraph.tools.models.saved import check_places, save

if TYPE_CHECKING:
    from camgraph.tools.models.bench.record import Machine
    from camgraph.tools.models.profile.run import Profiled

_file = click.Path(path_type=Path, dir_okay=False)


@click.command("profile")
@click.argument("file")
@click.option(
    "--providers", default="cpu", show_default=True, help="Who may run it, the best first, with commas: cuda,cpu."
)
@click.option("--batch", type=click.IntRange(1, 4096), default=1, show_default=True, help="Pictures of one run.")
@click.option("--intra-op", type=click.IntRange(1, 256), default=1, show_default=True, help="Threads of one run.")
@click.option("--frames", "sources", multiple=True, help="Videos or pictures to run it on; by default random ones.")
@says_its_size
@says_what_it_is
@brings_operators
@click.option("--runs", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most, after a warm-up.")
@click.option("--seconds", type=FiniteRange(0, 3600), default=30.0, show_default=True, help="No new run after it.")
@click.option(
    "--limit-seconds",
    type=click.FloatRange(1, 36_000),
    default=300.0,
    show_default=True,
    help="End the profile if opening the model, or a run, takes this much longer than --seconds.",
)
@click.option("--nodes", type=click.IntRange(0, 10_000), default=15, show_default=True, help="The heaviest, to show.")
@click.option("--json", "saved", type=_file, help="Save the figures here.")
@click.option("--plot", "picture", type=_file, help="Draw them into this PNG file.")
@click.option("--trace", type=_file, help="Keep ONNX Runtime's own file here: Perfetto (ui.perfetto.dev) shows it.")
def profile_model(file: str, **options: Any) -> None:
    """Show which parts of the model FILE (or asset:NAME) take its time: by provider, by operator, by node, with its
    memory.
    """
    from camgraph.stages.people.inference.model.model_files import find_model  # noqa: PLC0415 - with it comes ONNX Runtime
    from camgraph.stages.vision.foreign_text import shown  # noqa: PLC0415
    from camgraph.tools.models.bench import machine as bench_machine  # noqa: PLC0415
    from camgraph.tools.models.bench import pictures as bench_pictures  # noqa: PLC0415
    from camgraph.tools.models.bench import worker as bench_worker  # noqa: PLC0415
    from camgraph.tools.models.declaration import DeclaredModel  # noqa: PLC0415
    from camgraph.tools.models.profile import report as profile_report  # noqa: PLC0415
    from camgraph.tools.models.profile import run as profile_run  # noqa: PLC0415

    if options["picture"]:
        require_matplotlib()
    check_places([options["saved"], options["picture"], options["trace"]])
    model = find_model(file, Path.cwd())
    providers = provider_names(options["providers"])
    declared = DeclaredModel(model, declaration(options))
    pictures = bench_pictures.pictures_of(declared, options["sources"])
    rows = pictures.contract.batch or options["batch"]
    [batch, *_] = bench_worker.batches(pictures.rows, rows)
    watch = bench_machine.Watch()
    limits = options["intra_op"], options["runs"], options["seconds"]
    libraries, limit_s = declared.declaration.libraries, options["limit_seconds"]
    wanted = profile_run.Wanted(providers, *limits, libraries, limit_s)
    done = profile_run.profile(model, {pictures.contract.name: batch}, wanted)
    watch.sample()
    machine = watch.machine()
    title = f"{model.name}, {rows} x {pictures.size[0]} x {pictures.size[1]} ({pictures.source})"
    head = [*bench_machine.lines(machine), f"{title}, {options['intra_op']} threads a run"]
    click.echo("\n".join(f"- {shown(line)}" for line in head))
    click.echo("\n".join(profile_report.lines(done.profile, done.runs_on, options["nodes"])))
    _keep(done, title, machine, options)


def _keep(done: Profiled, title: str, machine: Machine, options: dict[str, Any]) -> None:
    """The files that were asked for."""
    if options["saved"]:
        save(options["saved"], json.dumps(_as_json(done, title, machine), indent=1) + "\n")
    if options["trace"]:
        save(options["trace"], done.trace)
    if options["picture"]:
        from camgraph.tools.models.profile.report import plot  # noqa: PLC0415

        plot(done.profile, f"{title} on {done.runs_on}: {done.profile.run_ms:.1f} ms a run", options["picture"])


def _as_json(done: Profiled, title: str, machine: Machine) -> dict[str, Any]:
    return {
        "kind": "camgraph model profile",
        "version": 1,
        "what": title,
        "machine": machine.model_dump(),
        "runs_on": done.runs_on,
        "by_provider": [asdict(group) for group in done.profile.by_provider()],
        "by_operator": [asdict(group) for group in done.profile.by_operator()],
        **asdict(done.profile),
    }
