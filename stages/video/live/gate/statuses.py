"""The statuses of HTTP and RTSP by their names, for people. Pure. Sources: RFC 9110, RFC 7826."""

from __future__ import annotations

from http import HTTPStatus

from camgraph.pipeline.foreign_text import shown

_MOST_SHOWN = 80
_OF_RTSP = {
    451: "Parameter Not Understood",
    452: "Conference Not Found",
    453: "Not Enough Bandwidth",
    454: "Session Not Found",
    455: "Method Not Valid in This State",
    456: "Header Field Not Valid for Resource",
    457: "Invalid Range",
    458: "Parameter Is Read-Only",
    459: "Aggregate Operation Not Allowed",
    460: "Only Aggregate Operation Allowed",
    461: "Unsupported Transport",
    462: "Destination Unreachable",
    463: "Destination Prohibited",
    464: "Data Transport Not Ready Yet",
    505: "RTSP Version Not Supported",
    551: "Option Not Supported",
}
_ADVICE_OF_RTSP = {
    453: "end other viewers of the camera, or choose a smaller stream",
    454: "it has forgotten this connection: restart the camera if that goes on",
}


def of_http(status: int, reason: str) -> str:
    """Number and name; ``reason``: the camera's own name for it, which counts if there is no other."""
    return f"{status} {_name(status, reason)}".rstrip()


def of_rtsp(status: int, reason: str) -> str:
    """As `of_http`, with advice."""
    advice = _ADVICE_OF_RTSP.get(status)
    named = f"{status} {_OF_RTSP.get(status) or _name(status, reason)}".rstrip()
    return f"{named}: {advice}" if advice else named


def _name(status: int, reason: str) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return shown(reason.strip(), _MOST_SHOWN)
