"""camgraph from Python: run a graph, and take its events, people and pictures as they come. See docs/python.md.

    for event in camgraph.run("lobby.yaml"):
        print(event.camera, event.action)

This package is a front: what runs is in `pipeline`, `stages` and `tools`, which import nothing of it. Start with
`runs.py`; `inbox.py` is the program's side of the sockets, `background.py` the thread that a run has here.
"""

from camgraph._packages import HiddenPackageError, require_own_packages

require_own_packages()

from camgraph.events import Event, EventPerson  # noqa: E402 - only when the packages are known to be ours
from camgraph.graphs import Graph, build, load, parse  # noqa: E402
from camgraph.pictures import Picture, TrackedFrame, TrackedPerson  # noqa: E402
from camgraph.runs import GaveUp, Result, Run, run, watch  # noqa: E402
from pipeline.errors import CamgraphError, EnvironmentProblem, GraphError, Problem, UserError  # noqa: E402
from tools.run_status import Status  # noqa: E402

__all__ = [
    "CamgraphError",
    "EnvironmentProblem",
    "Event",
    "EventPerson",
    "GaveUp",
    "Graph",
    "GraphError",
    "HiddenPackageError",
    "Picture",
    "Problem",
    "Result",
    "Run",
    "Status",
    "TrackedFrame",
    "TrackedPerson",
    "UserError",
    "build",
    "load",
    "parse",
    "run",
    "watch",
]
