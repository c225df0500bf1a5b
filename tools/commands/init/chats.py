"""Chats and push services that take an alert at a web address, each in a form of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Chat:
    """`hosts`: how the hosts of its own servers end, and `path` how addresses go on at anybody's server."""

    name: str
    body: str | Mapping[str, str]
    hosts: tuple[str, ...] = ()
    path: str = ""

    def settings(self) -> str:
        """Those of `sink_webhook` for one text when an incident begins, as YAML within braces."""
        return f"only: {{phase: [start, single]}}, body: {json.dumps(self.body, ensure_ascii=False)}"


_TEXT = "{what}, {time} {time_zone}. {about}"
CHATS: Mapping[str, Chat] = {
    "slack": Chat(
        "Slack, Mattermost, Rocket.Chat, Google Chat",
        {"text": _TEXT},
        ("hooks.slack.com", "chat.googleapis.com"),
        "/hooks/",
    ),
    "discord": Chat("Discord", {"content": _TEXT}, ("discord.com", "discordapp.com"), "/api/webhooks/"),
    "ntfy": Chat("ntfy, which tells phones", _TEXT, ("ntfy.sh",)),
}


def chat_at(url: str) -> str:
    """The name in CHATS of the chat that has this address; "" if the address does not tell."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    for name, chat in CHATS.items():
        if any(host == one or host.endswith(f".{one}") for one in chat.hosts):
            return name
    return next((name for name, chat in CHATS.items() if chat.path and parts.path.startswith(chat.path)), "")
