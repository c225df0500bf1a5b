"""camgraph from Python: run a graph and read its events, people and pictures as they arrive. See docs/python.md.

    import camgraph

    for event in camgraph.run("lobby.yaml"):
        print(event.camera, event.action)

This package is a thin front over `pipeline`, `stages` and `tools`, which import nothing from it. Start with
`runs.py`. `background.py` is the thread of a run, and `inbox.py` the program's side of the sockets.
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
    from camgraph.joints import Joint
    from camgraph.pictures import Picture, TrackedFrame, TrackedPerson
    from camgraph.runs import GaveUp, Items, Result, Run, run, watch
    from pipeline.errors import CamgraphError, EnvironmentProblem, GraphError, Problem, UserError
    from tools.display.run_status import Status

_MODULES = {
    "camgraph.events": ("Event", "EventPerson"),
    "camgraph.graphs": ("Graph", "build", "load", "parse"),
    "camgraph.joints": ("Joint",),
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
    "Joint",
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
    """Import a public name on first use: the command line starts with this package and needs none of them."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__


# `camgraph.__main__` checks this itself, to print no traceback. argv[0] is "-m" while `python -m` imports this package.
if Path(sys.argv[0] if sys.argv else "").name not in ("camgraph", "-m"):
    require_own_packages()
