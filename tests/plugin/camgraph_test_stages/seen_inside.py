"""`python -m camgraph_test_stages.seen_inside`: what a program sees of itself at its start, as JSON; ends with 7."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path


def _stream(name: str) -> list[object]:
    stream = getattr(sys, name)
    return [stream.name, stream.encoding, stream.errors, stream.newlines, stream.line_buffering, stream.isatty()]


def main() -> int:
    """Print it."""
    descriptors = {path.name: str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.exists()}
    umask = os.umask(0)
    seen = {
        "words": Path("/proc/self/cmdline").read_text().rstrip("\0").split("\0"),
        "orig_argv": sys.orig_argv,
        "argv": sys.argv,
        "name": __name__,
        "package": __package__,
        "folder": str(Path.cwd()),
        "environ": dict(os.environ),
        "path": sys.path[:1],
        "descriptors": sorted(number for number, to in descriptors.items() if not to.startswith("/proc")),
        "parent": os.getppid(),
        "users": [os.getresuid(), os.getresgid(), os.getgroups()],
        "owner": Path("/proc/self/stat").stat().st_uid,
        "group": os.getpgrp() == os.getpid(),
        "session": os.getsid(0) == os.getpid(),
        "umask": umask,
        "limit": resource.getrlimit(resource.RLIMIT_NOFILE),
        "handlers": [str(signal.getsignal(number)).split(" at ")[0] for number in range(1, 16)],
        "streams": [_stream(name) for name in ("stdin", "stdout", "stderr")],
        "writes_bytecode": not sys.dont_write_bytecode,
        "threads": [thread.name for thread in threading.enumerate()],
        "input": sys.stdin.read(),
    }
    sys.stdout.write(json.dumps(seen))
    sys.stderr.write("and this to the standard error\n")
    return 7


if __name__ == "__main__":
    sys.exit(main())
