"""Passes the log lines of a run to a program that logs with `logging` or with structlog."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from camgraph.pipeline.system.logs import log_to_logging, redacted


def log_lines() -> None:
    """Send the lines of runs to the logger `camgraph`, or to structlog if the program has configured it.

    The program's own lines go through its processors as before. Credentials are removed from camgraph's lines first.
    """
    if not structlog.is_configured():
        log_to_logging(logging.getLogger("camgraph"))
        return
    processors = structlog.get_config()["processors"]
    if _redact_ours not in processors:
        structlog.configure(processors=[_redact_ours, *processors])


def _redact_ours(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if not _is_ours():
        return event
    return redacted(logger, method, structlog.processors.format_exc_info(logger, method, event))


def _is_ours() -> bool:
    """Whether a module of camgraph logged the line that is being processed."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("structlog."):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "camgraph"
