"""A child process from start to end: it gets a plan, a title and logs, and ends when the supervisor dies.

    python -m camgraph.pipeline.worker.child --control FD --life FD LABEL

The process inherits two descriptors: a socket for the plan, the orders and the reports, and a pipe whose end of file
says that the supervisor is dead. The command line has nothing secret.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import structlog

from camgraph.pipeline.boot import Boot
from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EXIT_GAVE_UP, CamgraphError
from camgraph.pipeline.execution.pool import POOL_THREAD
from camgraph.pipeline.registry import place_in_stage
from camgraph.pipeline.shm.segments import unlink_prefix
from camgraph.pipeline.system.confidential import allow_dumps, forbid_dumps, hide_until_allowed
from camgraph.pipeline.system.file_access import keep_from_others
from camgraph.pipeline.system.logs import log_failed_threads, log_to
from camgraph.pipeline.system.redaction import hide, redacted_beginning
from camgraph.pipeline.system.run_folder import remove_run_of
from camgraph.pipeline.system.scarcity import in_words
from camgraph.pipeline.transport.channel import Channel
from camgraph.pipeline.worker.worker import Worker

_PR_SET_NAME = 15
_GRACE_S = 1.0
_NICE = 10
"""The niceness of a process that gives way: on two busy cores, a busy thread then gets a twentieth of their time."""
_LONGEST = 20_000


def run_child(control: int, life: int, label: str) -> int:
    """Be the process that the supervisor asked for; return the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # these go to the whole group: the supervisor gets them too, and decides
    _set_title(label)
    hide_until_allowed()
    channel = Channel(socket.socket(fileno=control))
    boot, orders = _receive_boot(channel)
    keep_from_others(boot.readable_by)
    threading.Thread(target=_die_with, args=(life, boot), name="life", daemon=True).start()
    hide(boot.secrets)
    log_to(lambda level, values: channel.send("log", level=level, values=values), process=boot.plan.name)
    log_failed_threads()
    log = structlog.get_logger()
    if boot.confidential:
        forbid_dumps(log.warning)
    else:
        allow_dumps()
    try:
        if boot.gives_way:
            _give_way()
        worker = Worker(boot, channel, log, orders)
        gc.freeze()  # modules, classes and stages: garbage is looked for among what comes from now on
        gc.enable()
        worker.run()
        return 0
    except CamgraphError as error:
        text = redacted_beginning(str(error), _LONGEST)
        channel.send("failed", status=error.exit_status, error=text, error_id=error.error_id)
        return error.exit_status
    except Exception as bug:
        scarce = in_words(bug)
        if scarce:
            text = f"{boot.plan.name}: {scarce}"
            channel.send("failed", status=EXIT_ENVIRONMENT, error=text, error_id="system-limit")
            return EXIT_ENVIRONMENT
        log.exception("process_failed")
        message = (
            f"{boot.plan.name}: {type(bug).__name__} in {place_in_stage(bug) or 'the runtime'}; the log has the details"
        )
        channel.send("failed", status=EXIT_GAVE_UP, error=message, error_id="bug")
        return EXIT_GAVE_UP
    finally:
        if channel.closed:
            _clean_up(boot)
        else:
            _drain(channel)


def _receive_boot(channel: Channel) -> tuple[Boot, list[dict[str, Any]]]:
    """The plan of this process, and the orders that came along with it."""
    while not channel.closed:
        messages = iter(channel.receive())
        for message in messages:
            if message["op"] == "boot":
                return Boot.from_wire(message["boot"]), list(messages)
        time.sleep(0.001)
    raise SystemExit(EXIT_GAVE_UP)


def _set_title(label: str) -> None:
    """The name that `ps` and `top` show in their short form; the long form is the command line, which ends in the
    label.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_NAME, f"cg:{label.rpartition('/')[2]}"[:15].encode(), 0, 0, 0)


def _give_way() -> None:
    """Lower the priority of this thread, and of the threads and processes that this thread starts."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)


def _die_with(life: int, boot: Boot) -> None:
    """Wait for the supervisor's death. The loop then ends by itself; if the loop hangs, end the process."""
    while True:
        with contextlib.suppress(InterruptedError):
            if not os.read(life, 1):
                break
    time.sleep(_GRACE_S)
    _clean_up(boot)
    os._exit(EXIT_GAVE_UP)


def _clean_up(boot: Boot) -> None:
    """Remove the folder and the shared memory of the run: without the supervisor, all its processes end."""
    unlink_prefix(boot.shm_prefix)
    remove_run_of(Path(boot.run_folder))


def _drain(channel: Channel) -> None:
    until = time.monotonic() + _GRACE_S
    while not channel.flush() and time.monotonic() < until:
        time.sleep(0.005)


def live(control: int, life: int, label: str) -> int:
    """Be the process that the supervisor asked for, to the end; return the exit status, or end the process here."""
    # Python looks through all objects for cycles once more before it ends: 80 ms of CPU, a fifth of a short life.
    atexit.register(gc.freeze)
    status = run_child(control, life, label)
    if any(thread.name.startswith(POOL_THREAD) for thread in threading.enumerate()):
        os._exit(status)  # Python would free a model that native code still runs: SIGABRT
    return status


def main() -> int:
    """The command line of `python -m camgraph.pipeline.worker.child`."""
    parser = argparse.ArgumentParser(prog="python -m camgraph.pipeline.worker.child")
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--life", type=int, required=True)
    parser.add_argument("label")
    arguments = parser.parse_args()
    return live(arguments.control, arguments.life, arguments.label)


if __name__ == "__main__":
    sys.exit(main())
