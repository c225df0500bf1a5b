"""The base of sinks to brokers: an address, who we are, TLS, and a client library that has to be installed.

A sink to a broker of yours, here beanstalkd, is as short as its protocol:

    import socket
    import time

    from camgraph.stages.sinks.delivery.bounded_line import HERE
    from camgraph.stages.sinks.delivery.broker import WAIT_S, BrokerSettings, BrokerSink


    class SinkBeanstalkSettings(BrokerSettings):
        '''Where the queue is.'''

        ports = {"beanstalk": 11300}


    class SinkBeanstalk(BrokerSink[SinkBeanstalkSettings]):
        '''Event -> a job of beanstalkd, which is delivered once it has a number there.'''

        settings_type = SinkBeanstalkSettings
        socket = answers = None

        def connect(self):
            self.socket = socket.create_connection((HERE, self.dial(time.monotonic() + WAIT_S)))
            self.answers = self.socket.makefile("rb")

        def send(self, events):
            with self.call(time.monotonic() + WAIT_S):
                for view in events:
                    self.socket.sendall(b"put 0 0 60 %d\\r\\n%s\\r\\n" % (len(view.event.body), view.event.body))
                    if not self.answers.readline().startswith(b"INSERTED"):
                        raise self.away("it did not take the event")
                    self.sent_already(view)

        def disconnect(self):
            for one in filter(None, (self.answers, self.socket)):
                one.close()
            super().disconnect()

`dial` connects to the broker, in TLS if the address says so, and gives a port of this machine that leads there. The
client library, if there is one, connects to that port, without TLS. Name its `package` and the `extra` that brings it.
Whatever the broker answers, and however slowly, `call` ends in time, and the library reads little (`bounded_line.py`).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from camgraph.pipeline.errors import EnvironmentProblem, ProblemText, Unavailable
from camgraph.pipeline.stage import Context, SettingProblems
from camgraph.pipeline.system.happy_eyeballs import host_and_port
from camgraph.stages.sinks.delivery.bounded_line import MOST_ANSWER, BoundedLine, Greeted, why_away
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink
from camgraph.stages.sinks.delivery.tls import TlsSettings, can_be_host, client_tls, tls_problems

WAIT_S = 4.0
"""How long a call may wait for the broker: the process has to answer within 10 s."""


class BrokerAddress(NamedTuple):
    """A parsed address. `path` is all behind the port, without the first `/`."""

    scheme: str
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{host_and_port(self.host, self.port)}" + (f"/{self.path}" if self.path else "")


def broker_address(text: str, ports: Mapping[str, int]) -> BrokerAddress:
    """Parse an address. `ports`: scheme -> usual port. Raises ValueError, whose text repeats no password."""
    expected = f"expected {' or '.join(f'{scheme}://HOST[:PORT]' for scheme in ports)}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(f"{expected} with a port from 1 to 65535") from None
    if "@" in parts.netloc:
        raise ValueError(f"{expected}: write name and password as `username` and `password`")
    if parts.scheme not in ports or not host or port == 0 or parts.query or parts.fragment:
        raise ValueError(expected)
    if not can_be_host(host):
        raise ValueError(f"{expected}: HOST can be no name of a host")
    return BrokerAddress(parts.scheme, host, port or ports[parts.scheme], parts.path.strip("/"))


class BrokerSettings(DeliverySettings):
    """Where the broker is, and who we are."""

    ports: ClassVar[Mapping[str, int]] = {}
    """Scheme -> usual port. The second scheme, if there is one, is that with TLS."""
    needs_username: ClassVar[bool] = True
    """Whether a password without a name means nothing."""

    address: str = Field(description="Of the broker")
    username: str | None = Field(None, min_length=1, description="With `password`, if the broker asks for them")
    password: str | None = Field(None, min_length=1, description="Write `${secret:NAME}`")
    tls: TlsSettings | None = Field(None, description="Whom to trust, and our own certificate")

    @field_validator("address")
    @classmethod
    def _parses(cls, address: str) -> str:
        broker_address(address, cls.ports)
        return address

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.password and not self.username and self.needs_username:
            raise ValueError("`password` belongs to a `username`: write that too")
        if self.tls and not self.is_secure:
            raise ValueError(f"`tls` is for addresses that begin with {list(self.ports)[-1]}://")
        return self

    @property
    def broker(self) -> BrokerAddress:
        return broker_address(self.address, self.ports)

    @property
    def is_secure(self) -> bool:
        return self.broker.scheme in list(self.ports)[1:]


B = TypeVar("B", bound=BrokerSettings)


class BrokerSink(EventSink[B]):
    """See the module."""

    package: ClassVar[str] = ""
    """The client library, as it is imported, if there is one."""
    extra: ClassVar[str] = ""
    """Which brings it: `camgraph[extra]`."""
    _line: BoundedLine | None = None

    def __init__(self, settings: B, context: Context) -> None:
        super().__init__(settings, context)
        self.address = settings.broker

    @classmethod
    def check(cls, settings: Any, base_folder: Path) -> SettingProblems:
        if not is_installed(cls.package):
            yield ("address",), ProblemText(cls._missing(), error_id="extra-missing")
        yield from tls_problems(settings.tls, base_folder)

    def open(self) -> None:
        if not is_installed(self.package):
            raise EnvironmentProblem(self._missing(), error_id="extra-missing")
        super().open()

    def tls(self) -> ssl.SSLContext | None:
        """None if the address is one without TLS. The files are read anew. Raises Unavailable."""
        return client_tls(self.settings.tls, self.context.base_folder) if self.settings.is_secure else None

    def dial(
        self,
        until_s: float,
        *,
        greeted: Greeted | None = None,
        inspect: Callable[[bytes], object] = lambda some: None,
    ) -> int:
        """Connect to the broker; see `BoundedLine`. Returns the port of 127.0.0.1 that leads there.

        Raises Unavailable.
        """
        try:
            self._line = BoundedLine(
                self.address.host,
                self.address.port,
                until_s,
                tls=None if greeted else self.tls(),
                server_name=self.server_name,
                greeted=greeted,
                inspect=inspect,
            )
        except OSError as error:
            raise self.away(error) from None
        return self._line.port

    @contextmanager
    def call(self, until_s: float, most_bytes: int = MOST_ANSWER) -> Iterator[None]:
        """Within, a call of the library: as `conversing`, and it fails at its end, or if the broker says too much."""
        assert self._line
        with self.conversing(), self._line.call(until_s, most_bytes):
            yield

    def disconnect(self) -> None:
        """Hang up. Close the connection of the library before."""
        if self._line:
            self._line.close()
            self._line = None

    def is_gone(self) -> bool:
        return self._line is not None and self._line.is_over

    def not_understood(self, error: Exception) -> Unavailable:
        return self.away(error) if self._why_cut else super().not_understood(error)

    @property
    def _why_cut(self) -> Exception | None:
        return self._line.why_cut if self._line else None

    @property
    def other_side(self) -> str:
        return str(self.address)

    @property
    def server_name(self) -> str:
        """The name that the broker's certificate has to show."""
        return (self.settings.tls and self.settings.tls.server_name) or self.address.host

    def away(self, error: BaseException | str) -> Unavailable:
        """The error to raise for one of the library: whose texts may hold secrets, so only known ones are repeated."""
        return Unavailable(f"{self.address}: {why_away(self._why_cut or error)}")

    @classmethod
    def _missing(cls) -> str:
        return f"this sink needs the package {cls.package}; get it with `pip install 'camgraph[{cls.extra}]'`"


def is_installed(package: str) -> bool:
    return not package or find_spec(package) is not None
