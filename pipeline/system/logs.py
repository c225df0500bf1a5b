"""Logs: an event name plus keys, the same keys in every process. Children send theirs to the supervisor."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, MutableMapping
from itertools import islice
from typing import Any

import structlog

from camgraph.pipeline.foreign_text import printable, shown
from camgraph.pipeline.system.redaction import redacted_beginning

_LONGEST = 20_000
_MOST_KEYS = 100
_PLAIN = structlog.dev.ConsoleRenderer(colors=False)


def _plain(value: Any) -> Any:
    """A value that travels: bounded, and never an error of its own, whatever a stage logs."""
    if isinstance(value, bool | float | None):
        return value
    if isinstance(value, int) and abs(value) < 1 << 63:
        return value
    return str(value)[:_LONGEST].encode(errors="replace").decode()


def redacted(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """No password of an address reaches a log, also not through the text of an exception, or from within a list."""
    for key, value in event.items():
        if not isinstance(value, bool | int | float | None):
            event[key] = redacted_beginning(str(value), _LONGEST)
    return event


def _in_words(logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
    """A line for people; no key and no value in it moves a terminal's cursor."""
    safe = {shown(key): printable(value) if isinstance(value, str) else value for key, value in event.items()}
    return str(_PLAIN(logger, method, {**safe, "event": shown(str(safe.get("event", "")))}))


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def log_to(send: Callable[[str, dict[str, Any]], object], **keys: str) -> None:
    """Hand every line of this process to `send` (level, values), with `keys` (stage, process) in each."""

    def hand_over(_: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        values = {key: _plain(value) for key, value in islice(event.items(), _MOST_KEYS)}
        values = {**values, **keys, "event": _plain(event.get("event"))}
        send(method, values)
        raise structlog.DropEvent

    structlog.configure(
        processors=[structlog.processors.format_exc_info, redacted, hand_over], cache_logger_on_first_use=False
    )


def log_to_stderr(
    *, as_json: bool = False, sink: Callable[[str], None] | None = None, least: int = logging.INFO
) -> None:
    """Write lines to the standard error, or hand each to `sink` (a live display that owns the terminal).

    `least`: the level (of `logging`) below which lines are dropped.
    """
    last = structlog.processors.JSONRenderer() if as_json else _in_words

    def hand_over(_: Any, __: str, event: MutableMapping[str, Any]) -> Any:
        (sink or _to_stderr)(str(last(None, "", event)))
        raise structlog.DropEvent

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso" if as_json else "%H:%M:%S", utc=as_json),
            structlog.processors.format_exc_info,
            redacted,
            hand_over,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        cache_logger_on_first_use=False,
    )


def log_to_logging(logger: logging.Logger) -> None:
    """Hand each line to a logger of `logging`, at its level: for programs that have their own way of logging."""

    def hand_over(_: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        level = logging.getLevelName("ERROR" if method == "exception" else method.upper())
        logger.log(level if isinstance(level, int) else logging.INFO, "%s", _in_words(None, "", event))
        raise structlog.DropEvent

    structlog.configure(
        processors=[structlog.processors.format_exc_info, redacted, hand_over], cache_logger_on_first_use=False
    )


def log_failed_threads() -> None:
    """An exception that ends a thread becomes a line of the log, not a traceback beside it."""

    def log(failed: threading.ExceptHookArgs) -> None:
        name = failed.thread.name if failed.thread else "?"
        structlog.get_logger().error("thread_failed", thread=name, exc_info=failed.exc_value)

    threading.excepthook = log
