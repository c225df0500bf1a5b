"""How a person gets to the page of a run, in words."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.system.happy_eyeballs import host_and_port
from camgraph.tools.service.serve import PORT, ServiceAddress, service_address

_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on


def ways_in(plan: RunPlan, *, has_terminal: bool | None = None) -> list[str]:
    """The address to open, how to get in, how to stop; nothing for a run without a page."""
    pages = [stage for process in plan.processes for stage in process.stages if stage.use == "serve"]
    lines = [line for page in pages for line in _way_in(page.name, page.settings)]
    terminal = sys.stderr.isatty() if has_terminal is None else has_terminal
    if lines and terminal:
        lines.append("Ctrl-C stops camgraph; closing the browser does not.")
    return lines


def _way_in(stage: str, settings: Mapping[str, Any]) -> list[str]:
    place = service_address(settings.get("address") or f"127.0.0.1:{PORT}")
    scheme = "https" if settings.get("certificate") else "http"
    names = [shown(str(token["name"])) for token in settings.get("tokens") or ()]
    where = "a browser of this machine" if place.is_local else "a browser"
    line = f"Open {scheme}://{host_and_port(_host(place), place.port)}/ in {where}."
    return [line, *_log_in(stage, names)]


def _host(place: ServiceAddress) -> str:
    """A name that browsers can open."""
    return socket.gethostname() if place.host in _EVERYWHERE else place.host


def _log_in(stage: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    whose = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return [f"The page asks for a token: type that of {whose} (`tokens` of the stage `{stage}`)."]
