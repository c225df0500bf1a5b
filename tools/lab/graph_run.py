"""Runs a graph that a measurement has written down, to its end."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from camgraph.pipeline.graph.loading import parse_graph
from camgraph.pipeline.graph.planning import plan_of
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import run_graph

_MOST_SAID = 1000
"""Characters of a message: a run that is not over in time reports everything it knows."""


def run_text(
    text: str, during: Callable[[Supervisor], None] | None = None, *, limit_s: float, folder: Path | None = None
) -> dict[str, Any]:
    """Run a graph and return its last status. ``folder``: of its relative paths, by default one that is removed again.

    ``during`` is called by the supervisor again and again. Raises ClickException if the run fails.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as name:
            return run_text(text, during, limit_s=limit_s, folder=Path(name))
    plan = plan_of(parse_graph(text, "graph.yaml", base_folder=folder))
    outcome, status = run_graph(plan, during, limit_s=limit_s)
    if outcome.status:
        raise click.ClickException("; ".join(outcome.problems)[:_MOST_SAID])
    return status
