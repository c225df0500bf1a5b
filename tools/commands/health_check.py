"""`camgraph status --check`: how a run is, for monitors, with the exit statuses of Nagios plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.monitoring.health import Health
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.supervision.control_client import ask, find_run
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.tools.commands.run_options import of_owner

Level = Literal["healthy", "degraded", "down", "unknown"]
EXIT_OF: Mapping[str, int] = {"healthy": 0, "degraded": 1, "down": 2, "unknown": 3}
"""OK, WARNING, CRITICAL and UNKNOWN. A level of a newer camgraph is unknown, too."""


def checked(name: str | None, owner: int | None = None) -> Health:
    """The verdict on the named run, or the only one; `owner` as for `find_run`. Never raises: any error is a verdict.

    `unknown`: there is no such run, or it cannot be said which one is meant, or it does not say how it is. `down`: it
    is there and does not answer.
    """
    try:
        run = find_run(name, owner=owner)
    except UserError as error:
        return _verdict("unknown", str(error))
    try:
        health = RunStatus.from_json(ask(run, "status", owner=owner)).health
    except EnvironmentProblem as error:
        return _verdict("down", str(error))
    except UserError as error:
        return _verdict("unknown", str(error))
    if health.level not in EXIT_OF:
        return _verdict("unknown", f"the run {run} is from another version of camgraph, and does not report its health")
    return _verdict(health.level, f"{run}{of_owner(owner)}: {health.reason}")


def _verdict(level: str, reason: str) -> Health:
    """On one line, of printable characters: camera names and errors come from elsewhere."""
    return Health(level, shown(" ".join(redact_urls(reason).split())))
