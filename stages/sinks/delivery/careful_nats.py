"""The client of nats-py, for servers that may send anything.

By itself the library keeps a line without an end, and as much of a message as its head says; it looks for an hour at a
line of blanks; and it sends the password unencrypted if the server says that it knows no TLS.
"""

from __future__ import annotations

import re
from typing import Any

from camgraph.stages.sinks.delivery.bounded_socket import MOST_ANSWER

_MOST_LINE = 1 << 16
_BLANKS = re.compile(rb"(?:INFO|-ERR|MSG|PING|PONG|\+OK)[ \t\r\n\f\v]{12}")
"""The library's expressions take time with the square of their number."""
_LONGEST_OP = 16


class NoTls(ConnectionError):
    """The server knows no TLS, and we were told to speak no other way."""


def careful_nats(*, needs_tls: bool) -> Any:
    """A client, to be connected. `renew()` begins a call, in which the server may say a megabyte. Raises NoTls."""
    from nats.aio.client import Client  # noqa: PLC0415 - an extra
    from nats.errors import ProtocolError  # noqa: PLC0415
    from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser  # noqa: PLC0415

    class CarefulParser(Parser):  # type: ignore[misc]
        left = MOST_ANSWER

        async def parse(self, data: bytes = b"") -> None:
            """Raises ProtocolError, also for what the library would write to the standard error."""
            self.left -= len(data)
            if self.left < 0 or _BLANKS.search(self.buf[-_LONGEST_OP:] + data):
                raise ProtocolError
            try:
                await super().parse(data)
            except (ProtocolError, OSError):
                raise
            except Exception as error:
                raise ProtocolError from error
            if self.state == AWAITING_CONTROL_LINE and len(self.buf) > _MOST_LINE:
                raise ProtocolError

    class CarefulClient(Client):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._ps = CarefulParser(self)

        def renew(self) -> None:
            self._ps.left = MOST_ANSWER

        def _connect_command(self) -> bytes:
            """With the password in it."""
            writer = self._transport._io_writer
            if needs_tls and writer.get_extra_info("ssl_object") is None:
                raise NoTls
            return bytes(super()._connect_command())

    return CarefulClient()
