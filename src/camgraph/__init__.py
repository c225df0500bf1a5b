"""camgraph from Python: run a graph and read its events, people and pictures as they arrive. See docs/python.md.

    import camgraph

    for event in camgraph.run("lobby.yaml"):
        print(event.camera, event.action)

The modules beside this one are a thin front over `pipeline`, `stages` and `tools`, which import nothing from the front.
Start with `runs.py`. `background.py` is the thread of a run, and `inbox.py` the program's side of the sockets.

`pipeline`, `stages`, `tools` and `configs` are links to the folders at the top of the repository; an installed package
has the folders themselves.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from camgraph.events import Event, EventPerson
    from camgraph.graphs import Graph, build, load, parse
    from camgraph.joints import Joint
    from camgraph.pictures import Picture, TrackedFrame, TrackedPerson
    from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem, GraphError, Problem, UserError
    from camgraph.runs import GaveUp, Items, Result, Run, Status, run, watch

_MODULES = {
    "camgraph.events": ("Event", "EventPerson"),
    "camgraph.graphs": ("Graph", "build", "load", "parse"),
    "camgraph.joints": ("Joint",),
    "camgraph.pictures": ("Picture", "TrackedFrame", "TrackedPerson"),
    "camgraph.runs": ("GaveUp", "Items", "Result", "Run", "Status", "run", "watch"),
    "camgraph.pipeline.errors": ("CamgraphError", "EnvironmentProblem", "GraphError", "Problem", "UserError"),
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
