"""camgraph from Python: run a graph, and take its events, people and pictures as they come. See docs/python.md.

    for event in camgraph.run("lobby.yaml"):
        print(event.camera, event.action)

This package is a front: what runs is in `pipeline`, `stages` and `tools`, which import nothing of it. Start with
`runs.py`; `inbox.py` is the program's side of the sockets, `background.py` the thread that a run has here.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from camgraph._packages import HiddenPackageError, require_own_packages

if TYPE_CHECKING:
    from camgraph.events import Event, EventPerson
    from camgraph.graphs import Graph, build, load, parse
    from camgraph.pictures import Picture, TrackedFrame, TrackedPerson
    from camgraph.runs import GaveUp, Items, Result, Run, run, watch
    from pipeline.errors import CamgraphError, EnvironmentProblem, GraphError, Problem, UserError
    from tools.display.run_status import Status

_MODULES = {
    "camgraph.events": ("Event", "EventPerson"),
    "camgraph.graphs": ("Graph", "build", "load", "parse"),
    "camgraph.pictures": ("Picture", "TrackedFrame", "TrackedPerson"),
    "camgraph.runs": ("GaveUp", "Items", "Result", "Run", "run", "watch"),
    "pipeline.errors": ("CamgraphError", "EnvironmentProblem", "GraphError", "Problem", "UserError"),
    "tools.display.run_status": ("Status",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "CamgraphError",
    "EnvironmentProblem",
    "Event",
    "EventPerson",
    "GaveUp",
    "Graph",
    "GraphError",
    "HiddenPackageError",
    "Items",
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


def __getattr__(name: str) -> object:
    """Imported when it is asked for: the command starts with this package, and needs none of it."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__


# The command tells of it without a traceback (`camgraph.__main__`); "-m" stands there while `python -m` looks for it.
if Path(sys.argv[0] if sys.argv else "").name not in ("camgraph", "-m"):
    require_own_packages()
