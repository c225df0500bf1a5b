"""Topics of MQTT: levels made of names, and the places below a prefix.

PREFIX/availability                online, offline         retained, and the last will
PREFIX/CAMERA/state                JSON                    retained
PREFIX/CAMERA/ACTION/state         ON, OFF                 retained
PREFIX/CAMERA/snapshot             a JPEG                  retained
PREFIX/CAMERA/ACTION               an event
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import Annotated

from pydantic import AfterValidator, Field

from camgraph.stages.sinks.delivery.template import TemplateText

_OURS = frozenset({"state", "snapshot", "availability"})
_MOST_LEVEL = 200


def level(name: str) -> str:
    """One level of a topic: `people talk` becomes `people_talk`. Never a name that the sink uses itself."""
    runs = ("".join(run) if is_safe else "_" for is_safe, run in groupby(name, _is_safe))
    safe = "".join(runs)[:_MOST_LEVEL]
    return f"{safe}_" if safe in _OURS else safe


def _is_safe(letter: str) -> bool:
    """Letters and numbers of any script: so no `+`, `#`, `/`, `$` and NUL, which mean something in a topic.

    Marks too, which `re` does not count among letters: many scripts write vowels so.
    """
    return letter in "_.-" or unicodedata.category(letter)[0] in "LMN"


def _is_topic(text: str) -> str:
    if set(text) & set("+#\0") or text.startswith("$") or not all(text.split("/")):
        raise ValueError("expected names with `/` between them, without +, # and $ at the beginning")
    return text


TopicText = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_is_topic)]


def _is_template(text: str) -> str:
    """Values of an event are one safe level each; here is what stands around them."""
    levels = [re.sub(r"\{\w+\}", "x", part) for part in text.split("/")]
    _is_topic("/".join(levels))
    if levels[-1] in _OURS:
        raise ValueError(f"expected another last name than {', '.join(sorted(_OURS))}: camgraph publishes states there")
    return text


TopicTemplate = Annotated[TemplateText, Field(min_length=1, max_length=1000), AfterValidator(_is_template)]


class Topics:
    """The places below a prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.availability = f"{prefix}/availability"

    def state(self, camera: str) -> str:
        return f"{self.prefix}/{level(camera)}/state"

    def action(self, camera: str, action: str) -> str:
        return f"{self.prefix}/{level(camera)}/{level(action)}/state"

    def snapshot(self, camera: str) -> str:
        return f"{self.prefix}/{level(camera)}/snapshot"
