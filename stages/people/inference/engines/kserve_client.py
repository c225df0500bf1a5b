"""Calls to an inference server by `tritonclient`, which is an extra: import this only if a server is used.

    call --answer--> result
         --no connection, no answer in time, busy--> Away       the connection is thrown away, the next call makes one
         --an error in its answer--> Refused

Each thread has a connection of its own: large requests do not share the window of one, and one thread's trouble is not
another's. A failed connection is replaced at once; gRPC itself would pause for up to two minutes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritonclient.grpc import InferenceServerClient
from tritonclient.utils import InferenceServerException

from camgraph.pipeline.system.redaction import HIDDEN
from camgraph.stages.people.inference.engines.engine import one_line

MOST_ANSWER_BYTES = 512 * 1024**2

_CHANNEL = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", MOST_ANSWER_BYTES),
    # A channel that shares its connection with those thrown away would be in their pause.
    ("grpc.use_local_subchannel_pool", 1),
    # The graph names the server; a proxy of the environment is for other things.
    ("grpc.enable_http_proxy", 0),
]
_AWAY = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "RESOURCE_EXHAUSTED", "ABORTED"}
_TOO_LARGE = "larger than max"


class Away(Exception):
    """The server is not there now, or too busy; the text says why, on one line."""


class Refused(Exception):
    """The server answered with an error; the text is one line. ``code`` is gRPC's name of it."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(text)


class ServerClient:
    """A server at ``url`` (host:port). ``ca``: whose certificates are trusted. ``headers`` never show in an error."""

    def __init__(self, url: str, *, tls: bool, ca: Path | None, headers: Mapping[str, str]) -> None:
        # Without the scheme a host called `unix` would be a file.
        self._target = f"dns:///{url}"
        self._tls = tls
        self._ca = ca
        self._headers = dict(headers)
        self._threads = threading.local()

    def call(self, method: str, *args: Any, timeout_s: float, **named: Any) -> Any:
        """The result of a method of tritonclient's client. Raises Away or Refused."""
        try:
            client = self._client()
            return getattr(client, method)(*args, headers=self._headers, client_timeout=timeout_s, **named)
        except InferenceServerException as error:
            code = (error.status() or "").removeprefix("StatusCode.")
            # Before it is made shorter: a part of a secret would not be known as one.
            text = one_line(Exception(self._without_secrets(str(error.message()))))
        if code not in _AWAY or _TOO_LARGE in text:
            raise Refused(code, text)
        self._throw_away()
        raise Away(f"no answer within {timeout_s:g} s" if code == "DEADLINE_EXCEEDED" else text)

    def _client(self) -> InferenceServerClient:
        """This thread's own."""
        client = getattr(self._threads, "client", None)
        if client is None:
            ca = str(self._ca) if self._ca else None
            client = InferenceServerClient(self._target, ssl=self._tls, root_certificates=ca, channel_args=_CHANNEL)
            self._threads.client = client
        return client

    def _throw_away(self) -> None:
        client = self._threads.__dict__.pop("client", None)
        if client is not None:
            client.close()

    def _without_secrets(self, text: str) -> str:
        """A server may repeat the request in its answer."""
        for value in self._headers.values():
            text = text.replace(value.removeprefix("Bearer "), HIDDEN)
        return text
