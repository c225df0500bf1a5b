"""What somebody wants to be told, when, and how."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from pydantic import BaseModel, ValidationError

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.rules.library import library
from camgraph.tools.commands.init.bed import as_name
from camgraph.tools.commands.init.chats import chat_at
from camgraph.tools.commands.init.dialog import Dialog, chosen

USUAL = {
    "fall": "Somebody falls, and stays on the ground",
    "lying": "Somebody lies on the ground. In a room with a bed, a sleeper counts, too",
    "on_the_floor": "Somebody lies on the floor, outside of the bed (you draw the bed on the page)",
    "out_of_bed": "Somebody leaves the bed (you draw the bed on the page)",
    "somebody": "Somebody is there at all",
    "hands_up": "Both hands are up",
    "calling_for_help": "Both arms wave over the head",
    "crowd": "More than 10 people are there at once",
    "nobody_there": "Nobody has been there for a minute",
}
"""What most people want, by the names of the library and in fewer words than its."""
NIGHT = ("21:00", "06:00")
RULES_FILE = "rules.yaml"
ZoneFrom = Literal["asked", "machine", "utc", "unknown"]
"""`utc`: the machine is set to UTC, as many are whose people live by another clock. `unknown`: UTC is a guess."""
_ELSEWHERE = " If your clocks show another time, set `time_zone` in {file}, such as Europe/Berlin."
_ZONE_WORDS: Mapping[ZoneFrom, str] = {
    "asked": ".",
    "machine": ", the time zone of this machine. To change it, set `time_zone` in {file}.",
    "utc": ": this machine's clock is set to UTC." + _ELSEWHERE,
    "unknown": ": the time zone of this machine is not known." + _ELSEWHERE,
}
_TIMES = re.compile(r"([01]?[0-9]|2[0-4]):([0-5][0-9])\s*(?:-|–|to)\s*([01]?[0-9]|2[0-4]):([0-5][0-9])")
_MOST_PORT = 65535
_ANYBODY = "somebody@example.org"
"""To fill in what is not asked about."""
_MAIL = re.compile(r"[^@\s<>,]+@[^@\s<>,]+")


@dataclass(frozen=True, slots=True)
class Mail:
    """`password`: as people type it, "" if the server asks for none. `certificate`: the server's own, in PEM format, if
    the user trusts that one; `server_name`: the name in it, if not the server's.
    """

    to: str
    sender: str
    server: str
    port: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    certificate: str = ""
    server_name: str = ""


@dataclass(frozen=True, slots=True)
class Broker:
    """An MQTT broker. `home_assistant`: whether Home Assistant listens there."""

    address: str
    user: str = ""
    password: str = field(default="", repr=False)
    home_assistant: bool = False


@dataclass(frozen=True, slots=True)
class Wishes:
    """`cameras`: empty for all. `between`: None for always. `zone_from`: who gave the zone.

    `chat`: the name in CHATS of what is at `webhook`; "" for a program that takes whole events.
    """

    actions: tuple[str, ...]
    cameras: tuple[str, ...] = ()
    between: tuple[str, str] | None = None
    zone: str = "UTC"
    zone_from: ZoneFrom = "asked"
    page: bool = True
    mail: Mail | None = None
    webhook: str = field(default="", repr=False)
    chat: str = ""
    broker: Broker | None = None


def offered() -> dict[str, str]:
    """What can be told without a zone or a line other than the bed, and what it means; the usual ones first."""
    templates = library().templates
    about = USUAL | {
        name: (template.about or "").rstrip(".")
        for name, template in templates.items()
        if name not in USUAL and all(one.default is not None for one in template.parameters.values())
    }
    cautions = {name: templates[name].caution for name in about}
    return {name: f"{text}. Do not rely on it" if cautions[name] else text for name, text in about.items()}


def known_action(words: str) -> str:
    """The name of what is meant. Raises UserError if it cannot be told, with the reason."""
    names, name = offered(), as_name(words)
    if name in names:
        return name
    if name in library().templates:
        raise UserError(
            f"{name} needs a zone or a line in the picture, which you draw in rules.yaml: see `camgraph help rules`",
            error_id="option-value",
        )
    raise UserError(
        f"there is nothing called {shown(words)} to tell{did_you_mean(name, names) or '; see `camgraph actions`'}",
        error_id="name-unknown",
    )


def ask_actions(dialog: Dialog) -> list[str]:
    """Asks until something is chosen."""
    about = offered()
    names = list(USUAL)
    dialog.show("What do you want to be told?")
    _list(dialog, names, about)
    dialog.show(f"  a  {len(about) - len(names)} more")
    while True:
        answer = dialog.ask("A number, or several such as 1,3", "1")
        if answer == "a":
            names = list(about)
            _list(dialog, names, about)
            dialog.show("Zones and lines you draw later, see: camgraph help rules")
            continue
        try:
            return chosen(answer, names)
        except UserError as error:
            dialog.show(str(error), "  ")


def _list(dialog: Dialog, names: Sequence[str], about: Mapping[str, str]) -> None:
    for number, name in enumerate(names, 1):
        dialog.show(f"{about[name]} ({name})", f" {number:2}  ", "     ")


def between(text: str) -> tuple[str, str] | None:
    """None for always. Raises UserError."""
    wanted = text.strip().lower()
    if wanted in ("", "always"):
        return None
    if wanted in ("night", "at night"):
        return NIGHT
    match = _TIMES.fullmatch(wanted)
    if match is None:
        raise UserError(
            f"{shown(text, 40)} is no time: expected always, night, or times such as 21:00-06:00",
            error_id="option-value",
        )
    begin, end = f"{int(match[1]):02}:{match[2]}", f"{int(match[3]):02}:{match[4]}"
    if begin == end or begin >= "24:00" or end > "24:00":
        raise UserError(
            f"{begin} to {end} is no time of the day: expected times such as 21:00-06:00", error_id="option-value"
        )
    return begin, end


def zone_of_machine(environ: Mapping[str, str] = os.environ, etc: Path = Path("/etc")) -> str:
    """The time zone that this machine is set to, by its name; "" if it has none with a name."""
    known = available_timezones()
    linked = str((etc / "localtime").resolve()).partition("zoneinfo/")[2].removeprefix("posix/")
    named = (environ.get("TZ", "").lstrip(":"), linked, _first_line(etc / "timezone"))
    zone = next((zone for zone in named if zone in known), "")
    return "UTC" if zone in ("Etc/UTC", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu") else zone


def _first_line(path: Path) -> str:
    """Where Debian writes the name, also if its `localtime` is a copy. "" if there is none."""
    try:
        return path.read_text("utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError):
        return ""


def times_in_words(wishes: Wishes) -> str:
    """Which hours are watched, in which zone, and how to change that; `between` is set."""
    assert wishes.between is not None
    begin, end = wishes.between
    name = f"{schedule_name(wishes)} is {begin}-{end}" if begin > end else f"You are told from {begin} to {end}"
    return f"{name} {wishes.zone}{_ZONE_WORDS[wishes.zone_from].format(file=RULES_FILE)}"


def schedule_name(wishes: Wishes) -> str:
    """The name of the schedule in the rules."""
    begin, end = wishes.between or NIGHT
    return "night" if begin > end else "hours"


def mail_address(text: str) -> str:
    """Raises UserError if it is none."""
    if not _MAIL.fullmatch(text) or not text.isprintable():
        raise UserError(
            f"{shown(text, 60) or 'nothing'} is no mail address: expected one such as night@example.org",
            error_id="option-value",
        )
    _require_taken("email", sender=text, to=text, server="localhost")
    return text


def mail_server(text: str) -> tuple[str, int | None]:
    """Host and port. Raises UserError."""
    match = re.fullmatch(r"([A-Za-z0-9._-]+|\[[0-9a-fA-F:]+\])(?::([0-9]{1,5}))?", text)
    if match is None:
        raise UserError(
            "expected the name of your mail server, such as mail.example.org or mail.example.org:465",
            error_id="option-value",
        )
    server, port = match[1].strip("[]"), int(match[2]) if match[2] else None
    if port is not None and not 1 <= port <= _MOST_PORT:
        raise UserError(f"there is no port {port}: expected one from 1 to {_MOST_PORT}", error_id="option-value")
    _require_taken("email", sender=_ANYBODY, to=_ANYBODY, server=server)
    return server, port


def mail_login(text: str) -> str:
    """A name or a password for a mail server; "" and - for none. Raises UserError, which does not repeat it."""
    if text and text != "-":
        _require_taken("email", sender=_ANYBODY, to=_ANYBODY, server="localhost", user=text, password=text)
    return text


def usual_server(sender: str) -> str:
    """What most providers call the server that takes mail."""
    return f"smtp.{sender.rpartition('@')[2]}"


def web_url(text: str) -> str:
    """Raises UserError, without the address: its path may be a secret."""
    try:
        parts = urlsplit(text) if text.isprintable() else None
    except ValueError:  # half of a pair of brackets
        parts = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or " " in text:
        raise UserError(
            "this is no address of a web server: expected one that begins with https://", error_id="option-value"
        )
    require_chat(text, chat_at(text))
    return text


def require_chat(url: str, chat: str) -> None:
    """Raises UserError if the address cannot be that of this chat; "" for a program that takes whole events."""
    _require_taken("webhook", url=url, **({"chat": chat} if chat else {}))


def is_private(host: str) -> bool:
    """Whether it is in a private network or on this machine, as far as its name tells."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal", ".home.arpa"))


def broker_address(text: str) -> str:
    """Raises UserError."""
    address = text if "://" in text else f"mqtt://{text}"
    if not re.fullmatch(r"mqtts?://[^\s/@]+/?", address):
        raise UserError(
            "expected the address of an MQTT broker, such as mqtt://10.0.0.5 or mqtts://broker.example.org",
            error_id="option-value",
        )
    _require_taken("mqtt", address=address)
    return address


def _require_taken(sink: Literal["email", "webhook", "mqtt"], **values: str) -> None:
    """Raises UserError if the settings of this sink refuse the values. The reason does not repeat them."""
    # Sinks take a while to import.
    from camgraph.stages.sinks.sink_email import SinkEmailSettings  # noqa: PLC0415
    from camgraph.stages.sinks.sink_mqtt import SinkMqttSettings  # noqa: PLC0415
    from camgraph.stages.sinks.sink_webhook import SinkWebhookSettings  # noqa: PLC0415

    settings: dict[str, type[BaseModel]] = {
        "email": SinkEmailSettings,
        "webhook": SinkWebhookSettings,
        "mqtt": SinkMqttSettings,
    }
    try:
        settings[sink].model_validate(values)
    except ValidationError as error:
        why = error.errors(include_url=False, include_input=False)[0]["msg"].removeprefix("Value error, ")
        raise UserError(why, error_id="option-value") from None


def lacks(*modules: str) -> bool:
    """Whether one of these packages is not installed."""
    return any(find_spec(module) is None for module in modules)
