"""`camgraph doctor`: is this machine fit, and if not, how do you mend it?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from camgraph.pipeline.errors import EXIT_ENVIRONMENT
from camgraph.tools.commands.demo import PORT as DEMO_PORT
from camgraph.tools.commands.doctor import gpu, machine, packages
from camgraph.tools.commands.doctor.notice import Notice, worst
from camgraph.tools.commands.env_file_option import env_file_option
from camgraph.tools.commands.local_path import LocalPath

_MARKS = {"ok": "ok     ", "warning": "warning", "wrong": "WRONG  "}
_FARM_PORT = 8554
_DEMO = "another program would get the events of the demo's graph: `camgraph demo` takes another port by itself"


@click.command()
@click.argument("graph_file", metavar="[GRAPH]", required=False, type=LocalPath())
@click.option("--json", "as_json", is_flag=True, help="For programs: a list of findings.")
@env_file_option("NAME=VALUE lines for `${NAME}` in GRAPH.")
@click.pass_context
def doctor(ctx: click.Context, graph_file: Path | None, as_json: bool, env_files: tuple[Path, ...]) -> None:
    """Check Python, packages, providers, GPU, memory, limits, codecs and ports; report problems and how to mend them.

    With GRAPH, also check that the memory its models may take of a GPU fits into it, and the disks of its clips.

    Exits with status 3 if something is wrong; warnings do not change it.
    """
    found: list[Notice] = []
    for finding in _looks(graph_file, env_files):
        found.append(finding)
        if not as_json:
            click.echo(_line(finding))
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in found], indent=2))
    if worst(found) == "wrong":
        ctx.exit(EXIT_ENVIRONMENT)


def _looks(graph_file: Path | None, env_files: Sequence[Path]) -> Iterator[Notice]:
    nvidia = gpu.look_for_nvidia()
    yield from packages.look_at_python()
    yield from packages.look_at_requirements()
    yield from packages.look_at_runtimes()
    yield from packages.look_at_imports(packages.runtime_of_this_system())
    yield from packages.look_at_plugins()
    yield from machine.look_at_processors()
    yield from machine.look_at_memory()
    yield from machine.look_at_shared_memory()
    yield from machine.look_at_descriptors()
    yield from _if_it_can_be("codecs", _codecs)
    yield from gpu.look_at_gpu(nvidia)
    yield from _if_it_can_be("cuda", partial(_cuda, nvidia))
    yield from _if_it_can_be("providers", partial(_providers, nvidia))
    if graph_file:
        yield from _if_it_can_be("graph", partial(_graph, graph_file, nvidia, env_files))
    yield from machine.look_at_port(_FARM_PORT, "camgraph farm")
    yield from machine.look_at_port(DEMO_PORT, "camgraph demo", _DEMO)


def _if_it_can_be(what: str, look: Callable[[], Iterable[Notice]]) -> Iterator[Notice]:
    """Checks that need packages which may be broken; `look_at_imports` has reported those."""
    try:
        yield from look()
    except (ImportError, AttributeError) as error:
        yield Notice(
            "wrong", what, f"cannot be checked: {error}", "first repair the packages that cannot be imported (above)"
        )


def _codecs() -> Iterator[Notice]:
    from camgraph.tools.commands.doctor import codecs  # noqa: PLC0415 - PyAV may be broken

    yield from codecs.look_at_codecs()
    yield from codecs.look_at_hardware()


def _cuda(nvidia: gpu.Nvidia) -> Iterator[Notice]:
    import onnxruntime as ort  # noqa: PLC0415 - as above

    yield from gpu.look_at_cuda(nvidia, getattr(ort, "cuda_version", ""))


def _providers(nvidia: gpu.Nvidia) -> Iterator[Notice]:
    from camgraph.stages.people.inference.engines import openvino_engine  # noqa: PLC0415 - as above
    from camgraph.tools.commands.doctor import providers  # noqa: PLC0415

    yield from providers.look_at_providers(nvidia=nvidia.is_here, openvino=openvino_engine.is_installed())


def _graph(graph_file: Path, nvidia: gpu.Nvidia, env_files: Sequence[Path]) -> Iterator[Notice]:
    from camgraph.tools.commands.doctor import graph  # noqa: PLC0415 - as above

    yield from graph.look_at_graph(graph_file, nvidia.gpus, env_files)


def _line(finding: Notice) -> str:
    line = f"{_MARKS[finding.state]} {finding.what}: {finding.found}"
    return f"{line}\n        -> {finding.cure}" if finding.cure else line
