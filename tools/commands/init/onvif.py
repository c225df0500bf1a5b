"""Asks a camera that follows ONVIF for the address of its stream."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from camgraph.tools.commands.init.soap import Login, SoapProblem, call, first

_DEVICE = 'xmlns="http://www.onvif.org/ver10/device/wsdl"'
_MEDIA = 'xmlns="http://www.onvif.org/ver10/media/wsdl"'
_SCHEMA = 'xmlns:t="http://www.onvif.org/ver10/schema"'
_REFUSED = (400, 401, 403)


class WrongPassword(Exception):
    """The camera refuses the user or the password: it was asked once, and counts it."""


def stream_address(service: str, user: str, password: str) -> str:
    """The RTSP address of its first profile, mostly the largest picture, without user and password.

    Raises SoapProblem, or WrongPassword.
    """
    login = Login(user, password, _ahead(service))
    media = _media_service(service)
    profile = _token(_answer(media, f"<GetProfiles {_MEDIA}/>", login))
    setup = f"<StreamSetup><t:Stream {_SCHEMA}>RTP-Unicast</t:Stream>"
    setup += f"<t:Transport {_SCHEMA}><t:Protocol>RTSP</t:Protocol></t:Transport></StreamSetup>"
    asked = f"<GetStreamUri {_MEDIA}>{setup}<ProfileToken>{escape(profile)}</ProfileToken></GetStreamUri>"
    address = first(_answer(media, asked, login), "Uri")
    _require_same_host(address, service, ("rtsp", "rtsps", "http", "https"))
    return address


def _ahead(service: str) -> timedelta:
    """How far its clock is ahead of ours; nothing if it does not say. This question needs no password."""
    with suppress(SoapProblem, ValueError, OverflowError):
        _, root = call(service, f"<GetSystemDateAndTime {_DEVICE}/>")
        utc = next(one for one in [*root.iter(), ET.Element("none")] if str(one.tag).endswith(("UTCDateTime", "none")))
        parts = [int(first(utc, name) or "x") for name in ("Year", "Month", "Day", "Hour", "Minute", "Second")]
        return datetime(*parts[:3], *parts[3:], tzinfo=UTC) - datetime.now(UTC)  # type: ignore[arg-type, misc]
    return timedelta()


def _media_service(service: str) -> str:
    """Where it answers about streams: most cameras say so without a password, and the others use the usual path."""
    parts = urlsplit(service)
    usual = f"http://{parts.netloc}/onvif/media_service"
    with suppress(SoapProblem):
        status, root = call(service, f"<GetCapabilities {_DEVICE}><Category>Media</Category></GetCapabilities>")
        address = first(root, "XAddr")
        if status == 200 and address:
            _require_same_host(address, service, ("http",))
            return address
    return usual


def _answer(address: str, body: str, login: Login) -> ET.Element:
    status, root = call(address, body, login if login.user else None)
    if status in _REFUSED and ("NotAuthorized" in _fault(root) or status != 400):
        raise WrongPassword
    if status != 200:
        raise SoapProblem(f"it answers ONVIF with status {status}")
    return root


def _fault(root: ET.Element) -> str:
    return " ".join((one.text or "")[:100] for one in root.iter() if str(one.tag).endswith(("Value", "Text")))


def _token(root: ET.Element) -> str:
    for element in root.iter():
        if str(element.tag).endswith("}Profiles") and element.get("token"):
            return str(element.get("token"))[:100]
    raise SoapProblem("it names no stream")


def _require_same_host(address: str, service: str, schemes: tuple[str, ...]) -> None:
    """Raises SoapProblem: an answer must not send us, and a password, elsewhere."""
    try:
        parts = urlsplit(address)
        good = parts.scheme in schemes and parts.hostname == urlsplit(service).hostname and not parts.username
    except ValueError:
        good = False
    if not good or not address.isprintable():
        raise SoapProblem("it leads to another machine than itself")
