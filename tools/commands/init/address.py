"""What people type as the address of a camera, taken apart: user and password stand by themselves from then on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, unquote

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph.variables import substitute
from camgraph.pipeline.system.names import nearest_name
from camgraph.pipeline.system.paths import ASSET_PREFIX, resolve
from camgraph.pipeline.system.redaction import hide, redact_url
from camgraph.stages.video.addresses import file_of, is_device, is_live, is_rtsp
from camgraph.stages.video.inspection import what_is_wrong

_PARTS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?:(?P<login>[^/?#]*)@)?(?P<rest>.*)", re.DOTALL)
_HOST = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+(:[0-9]{1,5})?(/.*)?|\[[0-9A-Fa-f:]+\](:[0-9]{1,5})?(/.*)?")
_FILE_ENDING = re.compile(r"\.(mp4|mkv|avi|mov|webm|m4v|mpg|mpeg|ts|jpe?g|png)", re.IGNORECASE)
EXPECTED = (
    "expected an address such as rtsp://10.0.0.11/main, only 10.0.0.11, the file of a video, or 0 for a camera that "
    "is plugged into this machine"
)


@dataclass(frozen=True, slots=True)
class Address:
    """`place` is the address without user and password; absolute for a file. `password` is as people type it."""

    place: str
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def live(self) -> bool:
        return is_live(self.place)

    @property
    def url(self) -> str:
        """With user and password, percent-encoded: to connect to, never to be shown."""
        if not self.user:
            return self.place
        scheme, _, rest = self.place.partition("://")
        password = f":{quote(self.password, safe='')}" if self.password else ""
        return f"{scheme}://{quote(self.user, safe='')}{password}@{rest}"

    @property
    def shown(self) -> str:
        return redact_url(self.place)

    @property
    def host(self) -> str:
        """Host and port; "" for what is not on a network."""
        return "" if not self.live or is_device(self.place) else re.split(r"[/?#]", self.place.partition("://")[2])[0]

    @property
    def hostname(self) -> str:
        """Without the port: all services of one machine mostly have the same accounts."""
        return re.sub(r":[0-9]*$", "", self.host)

    @property
    def path(self) -> str:
        """Behind the host, with its `/`; "" if there is none."""
        return self.place.partition("://")[2].removeprefix(self.host)

    @property
    def has_path(self) -> bool:
        return not is_rtsp(self.place) or bool(self.path.strip("/"))

    def with_login(self, user: str, password: str) -> Address:
        """The same place for somebody else; the password is hidden in all texts from then on."""
        hide([password])
        return replace(self, user=user, password=password)

    def with_path(self, path: str) -> Address:
        """The same camera at another path, which begins with `/`."""
        return replace(self, place=f"{self.place.partition('://')[0]}://{self.host}{path}")

    def in_graph(self, prefix: str) -> tuple[str, dict[str, str]]:
        """The `url` for a graph, and the values of its variables, whose names begin with `prefix`."""
        if not self.live:
            place = self.place if self.place.startswith(ASSET_PREFIX) else self.place.replace("${", "$${")
            return place, {}
        if redact_url(self.place) != self.place:  # nobody knows which part of it is secret
            return f"${{{prefix}_URL}}", {f"{prefix}_URL": self.url}
        scheme, _, rest = self.place.replace("${", "$${").partition("://")
        if not self.user:
            return self.place.replace("${", "$${"), {}
        user = quote(self.user, safe="")
        if not self.password:
            return f"{scheme}://{user}@{rest}", {}
        return f"{scheme}://{user}:${{{prefix}_PASSWORD}}@{rest}", {f"{prefix}_PASSWORD": self.password}


def variable(name: str) -> str:
    """The beginning of the names of a camera's variables: `room-3` gets `ROOM_3`."""
    plain = re.sub(r"[^A-Z0-9]+", "_", nearest_name(name).upper()).strip("_")
    return plain if plain[:1].isalpha() else f"CAMERA_{plain}".rstrip("_")


def address_of(text: str, folder: Path, environ: Mapping[str, str]) -> Address:
    """What `text` means; relative paths start at `folder`. Raises UserError with a way out, without secrets."""
    typed = _filled(text.strip(), environ)
    if not typed or not typed.isprintable():
        raise UserError(f"this is no address of a camera: {EXPECTED}", error_id="camera-address")
    if typed.isdigit() and typed.isascii():
        typed = f"/dev/video{int(typed)}"
    elif not is_live(typed) and _is_host(typed, folder):
        typed = f"rtsp://{typed}"
    if not is_live(typed):
        return _file(typed, folder)
    problem = what_is_wrong(typed, folder)
    if problem:
        raise UserError(
            f"{problem}. Leave user and password out of the address: they are asked for by themselves",
            error_id="camera-address",
        )
    return _network(typed, environ) if "://" in typed else Address(typed)


def _filled(typed: str, environ: Mapping[str, str]) -> str:
    """An address that is a variable as a whole is what that holds."""
    if "://" in typed or "${" not in typed:
        return typed
    filled = substitute(typed, environ)
    if filled.problems:
        raise UserError(f"the address of a camera: {'; '.join(filled.problems)}", error_id="camera-address")
    hide([filled.text])
    return filled.text


def _is_host(typed: str, folder: Path) -> bool:
    """Whether it is an address to which only the protocol is missing."""
    if typed.startswith((ASSET_PREFIX, "/", ".", "~")) or resolve(typed, folder).exists():
        return False
    place = re.sub(r"^[^/?#@]*@", "", typed)  # with a user before it
    return _HOST.fullmatch(place) is not None and not _FILE_ENDING.fullmatch(Path(typed).suffix)


def _network(typed: str, environ: Mapping[str, str]) -> Address:
    """User and password may be variables of `environ`."""
    match = _PARTS.fullmatch(typed)
    assert match is not None  # it is live
    rest = match["rest"].split("#")[0].rstrip("/") if match["rest"].count("/") == 1 else match["rest"]
    user, _, password = (match["login"] or "").partition(":")
    values = {}
    for key, given in (("place", match["scheme"] + rest), ("user", user), ("password", password)):
        filled = substitute(given, environ)
        if filled.problems:
            raise UserError(f"the address of a camera: {'; '.join(filled.problems)}", error_id="camera-address")
        values[key] = filled.text if filled.text != given or key == "place" else unquote(given)
    hide([values["password"]])
    return Address(values["place"]).with_login(values["user"], values["password"])


def _file(typed: str, folder: Path) -> Address:
    problem = what_is_wrong(typed, folder)
    if problem:
        raise UserError(f"{problem}: {EXPECTED}", error_id="camera-address")
    return Address(typed if typed.startswith(ASSET_PREFIX) else str(resolve(file_of(typed), folder).absolute()))
