"""A run as programs see it: what they can ask of it, and tell it to do."""

from __future__ import annotations

from typing import Protocol

from camgraph.pipeline.monitoring.health import Phase
from camgraph.pipeline.monitoring.outcome import Outcome
from camgraph.pipeline.monitoring.run_status import RunStatus


class RunView(Protocol):
    """A run, in processes of its own (`supervision.supervisor.Supervisor`) or in this one (`local.LocalRun`).

    All but `stop`, `hurry` and `reload` is for the thread that is in `run`, such as the callback of a run's turns.
    """

    @property
    def can_reload(self) -> bool:
        """Whether `reload` does something."""

    @property
    def is_reloading(self) -> bool:
        """From `reload` until the result is logged."""

    @property
    def phase(self) -> Phase:
        """Where the run is on its way from start to end."""

    def run(self) -> Outcome:
        """Run the graph to its end."""

    def status(self) -> RunStatus:
        """The status of now. It is built when it is asked for."""

    def stop(self) -> None:
        """End the sources and drain the rest. A second call gives up the frames on the way."""

    def hurry(self) -> None:
        """End at once, stopped or not. May be called again, and from another thread."""

    def reload(self) -> None:
        """Load the graph file again as soon as the run goes on, and log the result."""

    def switches(self) -> dict[str, bool]:
        """Switch -> whether it is on."""

    def turn_switch(self, name: str, *, on: bool) -> None:
        """Set a switch. Raises UserError if no stage has it, EnvironmentProblem if it is set, but cannot be kept."""

    def reset_counter(self, name: str, camera: str | None = None) -> None:
        """Set a counter to zero, on all cameras by default. Raises UserError if there is none."""
