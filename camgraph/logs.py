"""The lines of a run, for a program that logs with `logging`."""

from __future__ import annotations

import logging

import structlog

from pipeline.system.logs import log_to_logging


def log_lines() -> None:
    """Send them to the logger `camgraph`; not where the program has configured structlog itself."""
    if not structlog.is_configured():
        log_to_logging(logging.getLogger("camgraph"))
