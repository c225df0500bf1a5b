"""Finds the processes that hold credentials, and hides their memory from other processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from camgraph.pipeline.system.redaction import redact_url, spellings

_PR_SET_DUMPABLE = 4
_warned = False
"""A warning of this process says that its memory is not hidden."""


def secrets_in(settings: Any, secrets: Collection[str]) -> tuple[str, ...]:
    """Return those of these secrets that occur in settings (plain values)."""
    texts = list(_texts(settings))
    return tuple(one for one in secrets if any(way in text for way in spellings(one) for text in texts))


def holds_credentials(settings: Any) -> bool:
    """Whether an address in these settings has a part that may not be shown."""
    return any(redact_url(text) != text for text in _texts(settings))


def forbid_dumps(warn: Callable[..., object] | None = None) -> None:
    """Prevent a core dump of this process, and reads of its memory or environment by processes of the same user.

    Not even a debugger may; root may. If the system lacks or refuses the call, only core dumps are prevented. Then
    `warn`, a method of a log, is called once in the life of this process.
    """
    global _warned  # noqa: PLW0603 - one process, one warning
    why = _set_dumpable(False)
    if why and warn is not None and not _warned:
        _warned = True
        warn("memory_not_hidden", why=why, then="other processes of this user can read the credentials in it")
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - there is none on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def hide_until_allowed() -> None:
    """For a process that is about to receive its settings: nobody may look into it until it knows whether they are
    secret.
    """
    _set_dumpable(False)


def allow_dumps() -> None:
    """Its settings hold no credentials: debuggers and profilers of the same user may look into this process."""
    _set_dumpable(True)


def _set_dumpable(allowed: bool) -> str:
    """Return why the system has not done it, or an empty string. ctypes raises nothing if the call fails."""
    try:
        failed = ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, int(allowed), 0, 0, 0)
    except (OSError, AttributeError, TypeError):  # Windows: a TypeError for None
        return "this system has no prctl"
    return f"prctl: {os.strerror(ctypes.get_errno())}" if failed else ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
