"""Python as it is on Windows, as far as camgraph could tell: with this folder on PYTHONPATH every process begins so.

No fcntl, resource and the like, none of the functions and names that only POSIX or Linux has, no /proc and /dev/shm.
Left in place is what the standard library itself needs here to start a process.
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from types import ModuleType

_MODULES = ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "syslog", "readline", "curses")
_NAMES: dict[ModuleType, Sequence[str]] = {
    os: (
        "sched_getaffinity", "sched_setaffinity", "process_cpu_count", "fork", "forkpty", "register_at_fork", "getuid",
        "geteuid", "getgid", "getegid", "getgroups", "getpgid", "getpgrp", "getsid", "setsid", "killpg", "nice",
        "mkfifo", "mknod", "pread", "preadv", "pwrite", "pwritev", "readv", "writev", "sendfile", "fdatasync",
        "fchmod", "fchown", "chown", "lchown", "fchdir", "statvfs", "fstatvfs", "sysconf", "confstr", "pathconf",
        "getloadavg", "eventfd", "eventfd_read", "eventfd_write", "pidfd_open", "memfd_create",
        "posix_fallocate", "posix_fadvise", "pipe2", "openpty", "login_tty", "ttyname", "wait3", "wait4", "waitid",
        "O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK", "O_NOCTTY", "O_NOFOLLOW", "O_SYNC", "O_DSYNC", "EFD_CLOEXEC",
        "EFD_NONBLOCK",
    ),
    signal: (
        "SIGKILL", "SIGHUP", "SIGSTOP", "SIGCONT", "SIGCHLD", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGUSR2", "alarm",
        "setitimer", "ITIMER_REAL", "sigwait", "sigtimedwait", "pthread_kill", "pthread_sigmask", "siginterrupt",
    ),
    socket: ("AF_UNIX", "SCM_RIGHTS", "TCP_USER_TIMEOUT", "TCP_KEEPIDLE", "SO_REUSEPORT", "send_fds", "recv_fds"),
    select: ("poll", "epoll"),
    mmap: ("MAP_SHARED", "MAP_PRIVATE", "PROT_READ", "PROT_WRITE"),
    time: ("clock_gettime", "clock_gettime_ns", "clock_getres", "CLOCK_MONOTONIC", "CLOCK_REALTIME"),
}  # fmt: skip
_PLACES = ("/proc/", "/dev/shm", "/sys/")


def _no_such_place(event: str, args: tuple[object, ...]) -> None:
    if event in {"open", "os.listdir", "os.scandir"} and isinstance(args[0], str) and args[0].startswith(_PLACES):
        raise FileNotFoundError(2, "not on this system", args[0])


def _without_places(stat: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    """No audit event tells of these."""

    def looked(path: object, *args: object, **options: object) -> os.stat_result:
        if str(path).startswith(_PLACES):
            raise FileNotFoundError(2, "not on this system", path)
        return stat(path, *args, **options)

    return looked


for _module in _MODULES:
    sys.modules[_module] = None  # type: ignore[assignment]
for _owner, _names in _NAMES.items():
    for _name in _names:
        if hasattr(_owner, _name):
            delattr(_owner, _name)
os.stat, os.lstat = _without_places(os.stat), _without_places(os.lstat)
sys.addaudithook(_no_such_place)
