"""The command `camgraph`, also as `python -m camgraph`."""

from __future__ import annotations

import signal


def main() -> None:
    """The command line."""
    # Until the command has begun, Ctrl-C ends the process as it ends any program, without the traceback of an import.
    # `tools.cli` brings Python's handler back. One that is ignored (`nohup`) stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from camgraph.tools.cli import main as command  # noqa: PLC0415 - Ctrl-C ends this import already

    command()


if __name__ == "__main__":
    main()
