"""Which chat or push service an address belongs to. How its alerts look is the matter of `sink_webhook`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Chat:
    """`hosts`: how the hosts of its own servers end. `path`: what the path is like at anybody's server."""

    name: str
    hosts: tuple[str, ...] = ()
    path: str = ""


_SLACK_LIKE = r"/hooks/([a-z0-9]{26}|[0-9A-Za-z]{17,24}/[0-9A-Za-z]{20,})"
"""The first form is that of Mattermost, the second that of Rocket.Chat."""
CHATS: Mapping[str, Chat] = {
    "telegram": Chat("Telegram", ("api.telegram.org",)),
    "slack": Chat(
        "Slack, Mattermost, Rocket.Chat, Google Chat", ("hooks.slack.com", "chat.googleapis.com"), _SLACK_LIKE
    ),
    "discord": Chat("Discord", ("discord.com", "discordapp.com"), r"/api/webhooks/\d+/.+"),
    "teams": Chat("Microsoft Teams", ("webhook.office.com", "logic.azure.com", "api.powerplatform.com")),
    "ntfy": Chat("ntfy, which tells phones", ("ntfy.sh",)),
}
"""By the names that `sink_webhook` has for them."""


def chat_at(url: str) -> str:
    """The name in CHATS of the chat that has this address; "" if the address does not tell."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    for name, chat in CHATS.items():
        if any(host == one or host.endswith(f".{one}") for one in chat.hosts):
            return name
    return next((name for name, chat in CHATS.items() if chat.path and re.fullmatch(chat.path, parts.path)), "")
