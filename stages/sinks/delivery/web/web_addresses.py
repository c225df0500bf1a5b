"""Addresses of web servers: what is in a URL, and which addresses of the network may be connected to."""

from __future__ import annotations

import ipaddress
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from camgraph.pipeline.system.happy_eyeballs import bracketed, host_and_port
from camgraph.stages.sinks.delivery.tls import can_be_host

_EXPECTED = "expected https://HOST[:PORT]/PATH"
_PORTS = {"https": 443, "http": 80}
_EMBEDS_IPV4 = ipaddress.ip_network("64:ff9b::/96")
_EMBEDDED_IPV4 = ipaddress.ip_network("::/96")
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("64:ff9b:1::/48", "fec0::/10", "192.0.0.0/24", "192.88.99.0/24")))
"""Local addresses that `is_global` lets pass: of translators, sites of old, protocols and relays."""
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class WebAddress(NamedTuple):
    """A parsed URL. `target`, its path and query, may hold a token of the receiver: show `str()` alone."""

    scheme: Literal["https", "http"]
    host: str
    port: int
    target: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_and_port}"

    @property
    def host_and_port(self) -> str:
        """As the header `Host` has it."""
        return bracketed(self.host) if self.port == _PORTS[self.scheme] else host_and_port(self.host, self.port)


def web_address(url: str) -> WebAddress:
    """Parse a URL. Raises ValueError, whose text repeats nothing of it but the protocol."""
    if not url.isascii() or any(letter <= " " or letter == "\x7f" for letter in url):
        raise ValueError(f"{_EXPECTED}, without spaces and letters beyond ASCII: write them as %20 and the like")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(f"{_EXPECTED} with a port from 1 to 65535") from None
    if "@" in parts.netloc:
        raise ValueError(f"{_EXPECTED}: write name and password as `username` and `password`")
    scheme = parts.scheme
    if scheme not in ("https", "http") or not host or port == 0:
        raise ValueError(f"{_EXPECTED}, got {scheme or 'no protocol'}" + ("" if host else " and no host"))
    if not can_be_host(host):
        raise ValueError(f"{_EXPECTED}: HOST can be no name of a host")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebAddress("https" if scheme == "https" else "http", host, port or _PORTS[scheme], target)


def why_not_public(address: str) -> str:
    """Why this numerical address is none of the public internet: "a private address"; "" if it is one.

    An IPv6 address that stands for an IPv4 one is judged by that: it is how a loopback address could hide.
    """
    ip: _Address = ipaddress.ip_address(address.partition("%")[0])
    for inner in _within(ip):
        if inner.is_loopback or inner.is_unspecified:
            return "an address of this machine"
        if inner.is_link_local:
            return "a link-local address"
        if inner.is_multicast or not inner.is_global or any(inner in network for network in _NOT_PUBLIC):
            return "a private or reserved address"
    return ""


def _within(ip: _Address) -> list[_Address]:
    """The address, or the IPv4 addresses that it stands for; both where the address itself means something."""
    if isinstance(ip, ipaddress.IPv4Address):
        return [ip]
    if ip in _EMBEDDED_IPV4:
        return [ip, ipaddress.IPv4Address(int(ip))]
    if ip in _EMBEDS_IPV4:
        return [ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)]
    if ip.teredo:
        return list(ip.teredo)
    inner = ip.ipv4_mapped or ip.sixtofour
    return [inner] if inner else [ip]
