"""The command `camgraph`, also as `python -m camgraph`."""

from __future__ import annotations

import signal
import sys

from camgraph._packages import HiddenPackageError, require_own_packages


def main() -> None:
    """The command line."""
    # Until the command has begun, Ctrl-C ends the process as it ends any program, without the traceback of an import.
    # `tools.cli` brings Python's handler back. One that is ignored (`nohup`) stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        require_own_packages()
    except HiddenPackageError as hidden:
        sys.stderr.write(f"camgraph: {hidden}\n")
        sys.exit(hidden.exit_status)
    from tools.cli import main as command  # noqa: PLC0415 - now it is known to be ours

    command()


if __name__ == "__main__":
    main()
