"""Resources that the machine may refuse, mostly for a while (descriptors, memory, processes), and the messages about
it.
"""

from __future__ import annotations

import errno
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

from camgraph.pipeline.errors import EnvironmentProblem, Shortage

_LEAST_ADDRESS_SPACE = 2 << 30
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN})
_PATIENCE_S = 5.0
_SPARE_DESCRIPTORS = 16
"""For clients of the supervisor, such as `camgraph status`: otherwise these would wait until there are descriptors."""
_FILES = "raise the limit (ulimit -n for open files)"
_PROCESSES = "raise the limit (ulimit -u for processes)"
_MEMORY = "free some memory, or raise the limit (ulimit -v, or that of the container)"
_REMEDIES = {
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: _MEMORY,
    errno.ENOBUFS: _MEMORY,
}


def in_words(error: BaseException) -> str | None:
    """The missing resource and a way out; None for an error about something else.

    Errors of ZeroMQ are no OSError, and have an `errno` as well.
    """
    number = errno.ENOMEM if isinstance(error, MemoryError) else getattr(error, "errno", None)
    if number not in _SCARCE:
        return None
    return (
        f"the machine does not give enough for this graph: {os.strerror(number)}: {_REMEDIES.get(number, _PROCESSES)}, "
        "or use `processes: compact` or fewer cameras"
    )


def after(seconds: float = _PATIENCE_S) -> Callable[[], bool]:
    """Becomes true after some seconds: for a shortage whose end only another try can show."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


def shortage_of(error: OSError) -> Shortage | None:
    """The error as one that may pass; None for one that does not."""
    message = in_words(error)
    return Shortage(message, is_over=after(), error_id="system-limit") if message else None


def require_processes() -> None:
    """Call this before a graph is run in several processes. Raises EnvironmentProblem on systems other than Linux."""
    if not hasattr(os, "pidfd_open"):
        raise EnvironmentProblem(
            f"a graph in several processes needs Linux, and this is {platform.system()}: "
            "write `processes: one` in the graph file",
            error_id="platform",
        )


def require_descriptors() -> None:
    """Call this before another process is started. Raises OSError (EMFILE) if only the last ones are left."""
    import resource  # noqa: PLC0415 - there is none elsewhere

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = sum(1 for _ in Path("/proc/self/fd").iterdir())
    if limit - used < _SPARE_DESCRIPTORS:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


_LEAST_DESCRIPTORS = 24
"""The descriptors that any command needs before it starts a process."""


def require_address_space() -> None:
    """Call this before the large libraries are loaded: with too few descriptors they crash, or mislead with their
    errors.

    The same holds for descriptors.

    Raises EnvironmentProblem.
    """
    try:
        import resource  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors != resource.RLIM_INFINITY and descriptors < _LEAST_DESCRIPTORS:
        # ZeroMQ would abort the process over the first one that it does not get.
        raise EnvironmentProblem(
            "Too many open files: raise the limit (ulimit -n for open files)", error_id="system-limit"
        )
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_ADDRESS_SPACE:
        raise EnvironmentProblem(
            f"the address space of a process is limited to {limit / 1e6:.0f} MB, "
            f"and the libraries alone need up to {_LEAST_ADDRESS_SPACE / 1e6:.0f}: "
            "lift the limit (ulimit -v unlimited); where memory must be bounded, a container or cgroup does it",
            error_id="memory",
        )
