"""Who may read the files that a run makes: its pictures, videos and events show people."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

ReadableBy = Literal["owner", "group", "everyone"]
"""`everyone`: as the umask of the shell or the service manager has it."""

_MASKED: Mapping[ReadableBy, int] = {"owner": 0o077, "group": 0o027, "everyone": 0}


def keep_from_others(readable_by: ReadableBy = "group") -> None:
    """Let this process, and those that it starts, make files and folders with no more rights than that.

    A stricter umask stays as it is, and files that are there keep their mode. It holds for all threads of the process,
    so call it in a process of camgraph's own only.
    """
    os.umask(os.umask(0o077) | _MASKED[readable_by])


@contextmanager
def kept_from_others(readable_by: ReadableBy = "group") -> Iterator[None]:
    """As `keep_from_others`, until the block ends."""
    before = os.umask(0o077)
    os.umask(before | _MASKED[readable_by])
    try:
        yield
    finally:
        os.umask(before)
