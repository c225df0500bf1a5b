"""Checks that `pipeline`, `stages` and `tools` are camgraph's own, before anything is imported from them.

Users often have folders with these names. Python imports the first one on its path, which is the one beside the script
or in the working directory.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

OURS = ("pipeline", "stages", "tools")


class HiddenPackageError(ImportError):
    """A module or folder of the user has the name of one of camgraph's packages, and Python finds it first."""

    exit_status = 2


def require_own_packages() -> None:
    """Raise HiddenPackageError if Python finds another package under one of camgraph's names."""
    for name in OURS:
        theirs = _found_elsewhere(name)
        if theirs:
            raise HiddenPackageError(_message(name, theirs), name=name, path=theirs)


def _found_elsewhere(name: str) -> str:
    """Return the path of another package with this name; "" if Python finds ours, or none at all."""
    places = _loaded(name) if name in sys.modules else _found(name)
    ours = Path(__file__).resolve().parent.parent / name
    if not places or any(Path(place).resolve() == ours for place in places):
        return ""
    return places[0]


def _loaded(name: str) -> list[str]:
    module = sys.modules[name]
    return [str(place) for place in getattr(module, "__path__", [])] or [str(getattr(module, "__file__", "") or "")]


def _found(name: str) -> list[str]:
    spec = importlib.util.find_spec(name)
    if spec is None:
        return []
    return [str(place) for place in spec.submodule_search_locations or ()] or [str(spec.origin)]


def _message(name: str, theirs: str) -> str:
    return (
        f"`{name}` is a package of camgraph, but Python finds {theirs} instead: rename it, or move it into a package "
        f"of yours (myproject/{Path(theirs).name}), or keep it off Python's path: run `python -P`, set "
        "PYTHONSAFEPATH=1, or start from another folder"
    )
