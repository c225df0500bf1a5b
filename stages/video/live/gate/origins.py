"""The place of a camera, the places it may lead to, and the addresses that may be connected to. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple
from urllib.parse import unquote, urljoin

from camgraph.pipeline.system.happy_eyeballs import host_and_port
from camgraph.pipeline.system.redaction import HOST

_DEFAULT_PORTS = {"rtsp": 554, "rtsps": 322, "http": 80, "https": 443}
_MOST_PORT = 65_535
_SECURE = frozenset({"rtsps", "https"})


class Origin(NamedTuple):
    """The origin that credentials are for. `host` is in lower case (but for a zone), without brackets."""

    scheme: str
    host: str
    port: int

    @property
    def is_secure(self) -> bool:
        """Whether it is spoken to by TLS."""
        return self.scheme in _SECURE

    @property
    def authority(self) -> str:
        """`host:port` as an address has it."""
        return host_and_port(self.host, self.port)

    @property
    def named(self) -> str:
        """`host:port` for the camera: a zone such as `%eth0` means something to this machine alone (RFC 6874)."""
        return self._replace(host=self.host.partition("%")[0]).authority


class Login(NamedTuple):
    """As the camera knows them: without percent-encoding."""

    user: str
    password: str


class Target(NamedTuple):
    """The target of a request: `path` is empty or begins with a slash, and has the query."""

    origin: Origin
    path: str

    @property
    def url(self) -> str:
        """Without credentials."""
        return f"{self.origin.scheme}://{self.origin.authority}{self.path}"


def target_of(url: str) -> Target | None:
    """The target of an address, None if it is none of RTSP or HTTP. The user part may hold anything but `/ ? #`.

    The zone of a link-local address is written as `[fe80::1%eth0]`, or `%25eth0` as RFC 6874 has it.
    """
    scheme, colon, rest = url.partition("://")
    scheme = scheme.lower()
    if not colon or scheme not in _DEFAULT_PORTS:
        return None
    authority, path = _split(rest)
    found = HOST.fullmatch(authority.rpartition("@")[2])
    address, percent, zone = found[1].strip("[]").partition("%") if found else ("", "", "")
    host = address.lower() + percent + zone.removeprefix("25")
    port = int(found[2][1:]) if found and found[2] else _DEFAULT_PORTS[scheme]
    if not address or not 0 < port <= _MOST_PORT:
        return None
    if scheme.startswith("http"):
        path = path.partition("#")[0]
    return Target(Origin(scheme, host, port), path if path.startswith("/") or not path else f"/{path}")


def target_from(base: Target, reference: str) -> Target | None:
    """As `target_of`, for an address that may be relative to another; None also if it is no address at all."""
    try:
        return target_of(urljoin(base.url, reference))
    except ValueError:  # brackets that do not match, or letters that turn into others
        return None


def login_of(url: str) -> Login | None:
    """The credentials in an address; None if it has none."""
    userinfo, at, _ = _split(url.partition("://")[2])[0].rpartition("@")
    user, _, password = userinfo.partition(":")
    return Login(unquote(user), unquote(password)) if at else None


def _split(rest: str) -> tuple[str, str]:
    """The parts behind the `://`: up to, and from, the first `/ ? #`."""
    end = next((at for at, letter in enumerate(rest) if letter in "/?#"), len(rest))
    return rest[:end], rest[end:]


def may_be_reached(address: str, own: frozenset[str]) -> bool:
    """Whether another host that a camera leads to may be connected to at this numeric address.

    ``own``: the addresses of the camera itself. Nothing leads to this machine, nor to addresses that mean something
    else on each link, but for a camera that is there itself.
    """
    here, camera = _number(address), [_number(one) for one in own]
    if here.is_multicast or here.is_unspecified:
        return False
    if here.is_loopback:
        return any(one.is_loopback for one in camera)
    if here.is_link_local:
        return any(one.is_link_local for one in camera)
    return True


def _number(address: str) -> IPv4Address | IPv6Address:
    """Without a zone; as IPv4 even if it is written as IPv6."""
    number = ip_address(address.partition("%")[0])
    return (number.ipv4_mapped or number) if isinstance(number, IPv6Address) else number
