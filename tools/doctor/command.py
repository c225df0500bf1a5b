"""`camgraph doctor`: is this machine fit, and what mends it?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

import click
import onnxruntime as ort

from pipeline.errors import EXIT_ENVIRONMENT
from stages.inference import openvino_engine
from tools.demo import PORT as DEMO_PORT
from tools.doctor import codecs, gpu, machine, packages, providers
from tools.doctor.finding import Finding, worst

_MARKS = {"ok": "ok     ", "warning": "warning", "wrong": "WRONG  "}
_FARM_PORT = 8554
_DEMO = "another program would get the events of the demo's graph: `camgraph demo` takes another port by itself"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For programs: a list of findings.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Look at Python, packages, providers, GPU, memory, limits, codecs and ports; say what is wrong and what mends it.

    Exit status 3 where something is wrong; warnings do not change it.
    """
    found: list[Finding] = []
    for finding in _looks():
        found.append(finding)
        if not as_json:
            click.echo(_line(finding))
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in found], indent=2))
    if worst(found) == "wrong":
        ctx.exit(EXIT_ENVIRONMENT)


def _looks() -> Iterator[Finding]:
    nvidia = gpu.look_for_nvidia()
    return chain(
        packages.look_at_python(),
        packages.look_at_requirements(),
        packages.look_at_runtimes(),
        packages.look_at_plugins(),
        machine.look_at_processors(),
        machine.look_at_memory(),
        machine.look_at_shared_memory(),
        machine.look_at_descriptors(),
        codecs.look_at_codecs(),
        codecs.look_at_hardware(),
        gpu.look_at_gpu(nvidia),
        gpu.look_at_cuda(nvidia, getattr(ort, "cuda_version", "")),
        providers.look_at_providers(nvidia=nvidia.is_here, openvino=openvino_engine.is_installed()),
        machine.look_at_port(_FARM_PORT, "camgraph farm"),
        machine.look_at_port(DEMO_PORT, "camgraph demo", _DEMO),
    )


def _line(finding: Finding) -> str:
    line = f"{_MARKS[finding.state]} {finding.what}: {finding.found}"
    return f"{line}\n        -> {finding.cure}" if finding.cure else line
