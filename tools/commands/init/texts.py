"""The files for somebody's wishes, with a word on each part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from camgraph.stages.people.preprocess import USUAL_MAX_SIDE
from camgraph.stages.rules.library import library
from camgraph.tools.commands.init.address import Address, variable
from camgraph.tools.commands.init.bed import BED, bed_zones, need_bed
from camgraph.tools.commands.init.wishes import (
    RULES_FILE,
    Mail,
    Wishes,
    ZoneFrom,
    is_private,
    schedule_name,
)
from camgraph.tools.commands.watching.models import MULTIPOSE

GRAPH, RULES, SECRETS, IGNORED = "graph.yaml", RULES_FILE, "secrets.env", ".gitignore"
CERTIFICATE = "mail-server.pem"
"""Of a mail server that the user trusts by its certificate."""
_PORT_OF_TLS, _PORTS_IN_CLEAR = 465, (25, 1025)
_ZONES: Mapping[ZoneFrom, str] = {
    "asked": "The zone of the times below.",
    "machine": "The zone of the times below: that of the machine. Write yours if it is another, such as Europe/Berlin.",
    "utc": "The zone of the times below: the machine was set to UTC. Write yours, such as Europe/Berlin.",
    "unknown": "The zone of the times below: that of the machine was not known. Write yours, such as Europe/Berlin.",
}
ALARMING = frozenset({"fall", "lost_while_low", "calling_for_help"})
FPS = 8.0
"""With fewer frames a second, a fall that is seen in part is mostly missed."""
_RESERVED = ("MAIL", "MQTT", "WEBHOOK")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


@dataclass(frozen=True, slots=True)
class NewCamera:
    """A camera that belongs into the graph."""

    name: str
    address: Address


def files_for(
    cameras: Sequence[NewCamera], wishes: Wishes, name: str, sides: Mapping[str, int] | None = None
) -> dict[str, str]:
    """The texts of all files by their names; passwords are in `SECRETS` alone, which is left out if there are none.

    `sides`: the longest side of the model's picture, in pixels, for cameras that want another than the usual one.
    """
    urls, secrets = _urls(cameras)
    if wishes.mail and wishes.mail.password:
        secrets["MAIL_PASSWORD"] = wishes.mail.password
    if wishes.webhook:
        secrets["WEBHOOK_URL"] = wishes.webhook
    if wishes.broker and wishes.broker.password:
        secrets["MQTT_PASSWORD"] = wishes.broker.password
    files = {
        GRAPH: _text(_graph(urls, wishes, name, sides or {}, has_secrets=bool(secrets))),
        RULES: _text(_rules(wishes, [camera.name for camera in cameras])),
    }
    if wishes.mail and wishes.mail.certificate:
        files[CERTIFICATE] = wishes.mail.certificate
    return files | ({SECRETS: _text(_secrets(secrets))} if secrets else {})


def _text(lines: Iterator[str]) -> str:
    return "\n".join([*lines, ""])


def _urls(cameras: Sequence[NewCamera]) -> tuple[dict[str, str], dict[str, str]]:
    """The addresses for the graph by camera, and the values of their variables; no two cameras share a variable."""
    urls: dict[str, str] = {}
    secrets: dict[str, str] = {}
    taken = set(_RESERVED)
    for camera in cameras:
        prefix, number = variable(camera.name), 1
        while prefix in taken:
            number += 1
            prefix = f"{variable(camera.name)}_{number}"
        taken.add(prefix)
        urls[camera.name], values = camera.address.in_graph(prefix)
        secrets |= values
    return urls, secrets


def _graph(
    urls: Mapping[str, str], wishes: Wishes, name: str, sides: Mapping[str, int], *, has_secrets: bool
) -> Iterator[str]:
    env = f" --env-file {SECRETS}" if has_secrets else ""
    yield "# Your cameras, and what happens to their pictures. Made by `camgraph init`; change what you like."
    yield f"#   camgraph check {GRAPH}{env}     says what is wrong, with the line"
    yield f"#   camgraph {'serve' if wishes.page else 'run'} {GRAPH}{env}     runs it"
    yield "version: 1"
    yield f"name: {quoted(name)}"
    yield ""
    yield "cameras:"
    if has_secrets:
        yield f"  # ${{...}} stands for a line of {SECRETS}."
    for camera, url in urls.items():
        yield f"  {quoted(camera)}: {{url: {json.dumps(url, ensure_ascii=False)}}}"
    yield "# More frames a second cost more of the processor; with fewer, quick movements are missed."
    yield f"camera_defaults: {{max_fps: {_fps(wishes):g}}}"
    yield ""
    yield "stages:"
    yield "  capture: {use: capture}                                  # reads the cameras"
    yield from _prepare(sides)
    yield f'  infer:   {{use: infer, from: prepare, group: model, with: {{model: "asset:{MULTIPOSE}"}}}}'
    yield "  people:  {use: decode, from: infer, group: model}        # finds people and their joints"
    yield "  tracks:  {use: track, from: people}                      # follows each of them"
    yield f"  actions: {{use: rules, from: tracks, with: {{file: {RULES}}}}}   # says what they do"
    yield ""
    yield "  # A picture and a clip of each incident, for 30 days."
    yield "  footage: {use: sink_footage, from: actions, with: {path: footage}}"
    yield "  # One line for each event, also for cameras that are lost and back."
    yield "  log:     {use: sink_jsonl, from: events, with: {path: events.jsonl}}"
    yield from _ways(wishes)


def _prepare(sides: Mapping[str, int]) -> Iterator[str]:
    if not sides:
        yield "  prepare: {use: preprocess, from: capture}                # makes the model's picture"
        return
    each = ", ".join(f"{quoted(camera)}: {side}" for camera, side in sides.items())
    yield "  # Makes the model's picture, with this longer side: people far away need a larger one, which takes longer."
    yield f'  prepare: {{use: preprocess, from: capture, with: {{max_side: {{{each}, "*": {USUAL_MAX_SIDE}}}}}}}'


def _ways(wishes: Wishes) -> Iterator[str]:
    if wishes.page:
        yield "  # The page in your browser, on this machine alone; `camgraph help service` opens it to others."
        yield "  page:    {use: serve, from: events}"
    if wishes.mail:
        yield from _mail(wishes.mail)
    if wishes.webhook:
        host = urlsplit(wishes.webhook).hostname or ""
        private = ", allow_private: true" if is_private(host) else ""
        url = 'url: "${secret:WEBHOOK_URL}"'
        if wishes.chat:
            yield "  # An alert when an incident begins, and when a camera is lost or back."
            yield f"  chat:    {{use: sink_webhook, from: events, with: {{chat: {wishes.chat}, {url}{private}}}}}"
        else:
            yield "  # Each event goes to a web server. Its address may hold a token, so it is a secret."
            yield f"  web:     {{use: sink_webhook, from: actions, with: {{{url}{private}}}}}"
    if wishes.broker:
        login = f", username: {quoted(wishes.broker.user)}" if wishes.broker.user else ""
        login += ', password: "${secret:MQTT_PASSWORD}"' if wishes.broker.password else ""
        login += ", home_assistant: true, snapshots: true" if wishes.broker.home_assistant else ""
        whom = "Home Assistant" if wishes.broker.home_assistant else "a house that listens to one"
        yield f"  # Each event goes to an MQTT broker, for {whom}."
        yield f"  house:   {{use: sink_mqtt, from: events, with: {{address: {quoted(wishes.broker.address)}{login}}}}}"


def _mail(mail: Mail) -> Iterator[str]:
    yield "  # A mail with the picture when an incident begins, and when a camera is lost or back."
    yield "  mail:"
    yield "    use: sink_email"
    yield "    from: events"
    yield "    with:"
    for key, value in mail_settings(mail).items():
        yield f"      {key}: {_value(value)}"


def mail_settings(mail: Mail) -> dict[str, str | int | dict[str, str]]:
    """The settings of `sink_email`, with its password as a secret."""
    settings: dict[str, str | int | dict[str, str]] = {"server": mail.server}
    if mail.port:
        settings["port"] = mail.port
    if mail.port == _PORT_OF_TLS:
        settings["security"] = "tls"
    elif not mail.password and mail.port in _PORTS_IN_CLEAR:
        settings["security"] = "none"
    if mail.certificate:
        settings["tls"] = {"ca": CERTIFICATE} | ({"server_name": mail.server_name} if mail.server_name else {})
    if mail.password:
        settings |= {"user": mail.user, "password": "${secret:MAIL_PASSWORD}"}
    return settings | {"sender": mail.sender, "to": mail.to}


def _value(value: str | int | dict[str, str]) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_value(one)}' for key, one in value.items())}}}"
    if isinstance(value, int):
        return str(value)
    return f'"{value}"' if value.startswith("${secret:") else quoted(value)


def _fps(wishes: Wishes) -> float:
    templates = library().templates
    return max(FPS, *(templates[name].least_fps or 0 for name in wishes.actions if name in templates), 0)


def _rules(wishes: Wishes, cameras: Sequence[str]) -> Iterator[str]:
    yield "# What you want to be told, and when. `camgraph actions` lists what else there is."
    yield "version: 1"
    if wishes.between:
        yield f"# {_ZONES[wishes.zone_from]}"
    yield f"time_zone: {quoted(wishes.zone)}"
    during = ""
    if wishes.between:
        begin, end = wishes.between
        schedule = schedule_name(wishes)
        yield f'schedules: {{{schedule}: {{from: "{begin}", to: "{end}"}}}}'
        during = f", during: {schedule}"
    only = [name for name in cameras if name in wishes.cameras]
    where = f", cameras: [{', '.join(map(quoted, only))}]" if only and len(only) < len(cameras) else ""
    if need_bed(wishes.actions):
        yield from bed_zones(map(quoted, only or cameras))
    yield "rules:"
    for name in wishes.actions:
        yield f"  # {library().templates[name].about}"
        what = f"use: {name}" + (f", with: {{{BED}: {BED}}}" if need_bed([name]) else "")
        severity = ", severity: alarm" if name in ALARMING else ""
        yield f"  - {{{what}{where}{during}{severity}}}"


def _secrets(values: Mapping[str, str]) -> Iterator[str]:
    yield "# Passwords, as they are, in a line each. Keep this file to yourself: it is not for git, mails or chats."
    for name, value in values.items():
        yield f"{name}={_as_value(value)}"


def _as_value(text: str) -> str:
    """In quotes if a reader would take blanks or quotes off."""
    return text if text == text.strip() and text[:1] not in ("'", '"') else f'"{text}"'


def quoted(text: str) -> str:
    """The text as YAML reads it back: bare if that is safe."""
    bare = _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS
    return text if bare else json.dumps(text.replace("${", "$${"), ensure_ascii=False)
