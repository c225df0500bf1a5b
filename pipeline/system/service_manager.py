"""What a run tells systemd about itself: sd_notify(3) and sd_watchdog_enabled(3), without libsystemd.

systemd sets these variables for a unit of `Type=notify`. The notifications are datagrams of `NAME=VALUE` lines.

NOTIFY_SOCKET    the socket to send to: a path, or @name for an abstract one
WATCHDOG_USEC    kill the service if no WATCHDOG=1 came for so long (µs)
WATCHDOG_PID     the process that is meant; none means any
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import MutableMapping
from typing import Self

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_LONGEST_STATUS = 500


class ServiceManager:
    """The service manager that has started this process. Each call returns False if nothing could be sent.

    `address`: as in NOTIFY_SOCKET. `watchdog_s`: the longest time between two calls of `alive`; infinite without one.
    """

    def __init__(self, address: str, watchdog_s: float = math.inf) -> None:
        self.watchdog_s = watchdog_s
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)

    @classmethod
    def taken_from(cls, environ: MutableMapping[str, str] = os.environ) -> Self | None:
        """The service manager, if one has started this process.

        Its variables are removed: programs that this process starts must not speak for it.
        """
        address, watchdog_us, pid = (environ.pop(name, "") for name in VARIABLES)
        if not address.startswith(("/", "@")) or len(address) < 2:
            return None
        is_meant = pid in ("", str(os.getpid()))
        has_watchdog = is_meant and watchdog_us.isdecimal() and int(watchdog_us) > 0
        return cls(address, int(watchdog_us) / 1e6 if has_watchdog else math.inf)

    def close(self) -> None:
        self._socket.close()

    def ready(self) -> bool:
        """The start, or a reload, is over."""
        return self._send("READY=1")

    def reloading(self) -> bool:
        """A reload begins; `ready` ends it. Also what `Type=notify-reload` wants."""
        return self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> bool:
        """The service ends. From now on there is no watchdog, but `need_longer`."""
        return self._send("STOPPING=1")

    def alive(self) -> bool:
        """The watchdog's time begins anew."""
        return self._send("WATCHDOG=1")

    def need_longer(self, seconds: float) -> bool:
        """While it starts or stops: it will be done, or ask again, within this time."""
        return self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")

    def status(self, text: str) -> bool:
        """The line that `systemctl status` shows; line breaks in it become blanks."""
        return self._send(f"STATUS={' '.join(text.split())[:_LONGEST_STATUS]}")

    def _send(self, *lines: str) -> bool:
        try:
            self._socket.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
        except OSError:  # it is full, or gone: callers send again
            return False
        return True
