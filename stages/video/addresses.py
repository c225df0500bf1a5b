"""The address of a camera, and the likely mistakes in it. See also `pipeline.system.redaction`."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address

from camgraph.pipeline.system.redaction import HOST, SECRET_IN_PATH
from camgraph.pipeline.system.spelling import did_you_mean

FILE_SCHEME = "file://"
_EXPECTED = "host:port/path after the slashes, with user:password@ before it if the camera asks for them"

# Protocols that some build of FFmpeg opens over a network; if this one lacks a protocol, it says so when it connects.
# Protocols that lead on to other files or hosts without a bound of ours are left out: data, concat, subfile, pipe,
# unix, httpproxy, mmsh, ipfs.
PROTOCOLS = (
    *("rtsp", "rtsps", "rtmp", "rtmps", "rtmpt", "rtmpts", "rtmpe", "rtmpte", "http", "https"),
    *("udp", "udplite", "tcp", "tls", "dtls", "rtp", "srtp", "srt", "rist", "sctp", "sap", "satip", "mmst"),
    *("ftp", "sftp", "gopher", "gophers", "icecast", "whip", "amqp", "zmq", "smb"),
)

_CALLED = frozenset({"rtsp", "rtsps", "http", "https", "rtmp", "rtmps", "ftp", "sftp"})
"""Here camgraph calls the camera; by others, such as udp and srt, it may call us, and its host is left out."""
_MOST_PORT = 65_535
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# The user meant an address: `rtsp:/...`, `http;\\...`, or a protocol in the place of a folder, as in `rtsp//...`;
_BEGINS_AS_ADDRESS = re.compile(
    rf"\s*([A-Za-z][A-Za-z0-9+.-]+[:;][/\\]|({'|'.join(PROTOCOLS)})\W*[/\\]{{2}})", re.IGNORECASE
)
# or with a login in it, or two slashes behind a colon.
_HOLDS_ADDRESS = re.compile(r"([:;]|[/\\]{2}).*@|:[/\\]{2}", re.DOTALL)


def is_live(url: str) -> bool:
    """Whether the address is of something that sends by itself: any `scheme://` but file, or a video device."""
    return is_device(url) or (_SCHEME.match(url) is not None and not url.lower().startswith(FILE_SCHEME))


def is_device(url: str) -> bool:
    """A camera of this machine, by Video4Linux."""
    return url.startswith("/dev/video")


def scheme_of(url: str) -> str:
    """The protocol of an address, in lower case; "usb" for a video device, "" for a file."""
    match = _SCHEME.match(url)
    return match.group()[: -len("://")].lower() if match else "usb" if is_device(url) else ""


def is_rtsp(url: str) -> bool:
    """Whether it is spoken to by RTSP, with or without TLS."""
    return scheme_of(url) in ("rtsp", "rtsps")


def is_web(url: str) -> bool:
    """Whether it is spoken to by HTTP, with or without TLS."""
    return scheme_of(url) in ("http", "https")


def is_gated(url: str) -> bool:
    """Whether camgraph itself connects to it, and FFmpeg to camgraph: see `stages.video.live.gate`."""
    return is_rtsp(url) or is_web(url)


def is_playlist(url: str) -> bool:
    """Whether its name is that of a playlist (HLS); only its server knows for certain."""
    protocol, _, path = url.partition("://")
    return protocol.lower().startswith("hls") or re.split(r"[?#]", path)[0].lower().endswith((".m3u8", ".m3u"))


def file_of(url: str) -> str:
    """The path in the address of a file: without `file://`, if it has that."""
    return url[len(FILE_SCHEME) :] if url.lower().startswith(FILE_SCHEME) else url


def why_no_protocol(url: str) -> str:
    """Why nothing can be opened by this protocol, "" if FFmpeg may know it, and for a video device."""
    match = _SCHEME.match(url)
    if match is None:
        return ""
    protocol = match.group()[: -len("://")].lower()
    if protocol in PROTOCOLS:
        return ""
    return f"unknown protocol `{protocol}`, expected one that FFmpeg opens, such as rtsp, http or srt" + did_you_mean(
        protocol, PROTOCOLS
    )


def why_no_host(url: str) -> str:
    """Why it is not known at which host and port a live camera is, "" if it is.

    Nothing is quoted: a port may be a password before a host that was forgotten.
    """
    match = _SCHEME.match(url)
    if match is None:
        return ""
    authority = re.split(r"[/?#]", url[match.end() :], maxsplit=1)[0]
    match = HOST.fullmatch(authority.rpartition("@")[2])
    if match is None:
        return (
            f"no host can be read in this {scheme_of(url)} address: expected {_EXPECTED}; in these, / ? # @ : are "
            "written percent-encoded (%2F %3F %23 %40 %3A; what comes from a variable is so by itself)"
        )
    host, port = match.groups()
    return _why_no_host(url, host, port)


def _why_no_host(url: str, host: str, port: str | None) -> str:
    if any(letter.isspace() for letter in host):
        return f"there is a blank in the host of this {scheme_of(url)} address: expected {_EXPECTED}"
    if _lacks_interface(host.strip("[]")):
        return f"this {scheme_of(url)} address lacks its network interface: write [fe80::1%eth0]"
    if not host and scheme_of(url).rpartition("+")[2] in _CALLED:
        return f"this {scheme_of(url)} address has no host: expected {_EXPECTED}"
    if port and not 0 < int(port[1:]) <= _MOST_PORT:
        return f"the port in this {scheme_of(url)} address is out of range: expected 1 to {_MOST_PORT}"
    return ""


def _lacks_interface(host: str) -> bool:
    number, _, interface = host.partition("%")
    try:
        address = ip_address(number)
    except ValueError:
        return False
    return isinstance(address, IPv6Address) and not interface and (address.is_link_local or "%" in host)


def why_no_path(text: str) -> str:
    """Why this, which is no file, cannot be the path of one: it was meant as an address. "" if it may be a path.

    It is not quoted: nobody knows which part of it is a password.
    """
    begins, holds = _BEGINS_AS_ADDRESS.match(text), _HOLDS_ADDRESS.search(text) or SECRET_IN_PATH.search(text)
    if not begins and not holds:
        return ""
    return (
        "no such file, and no address either: an address has two slashes after the colon: rtsp://... "
        "(what was given is not shown: it may hold a password)"
    )
