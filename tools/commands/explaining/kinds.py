"""The kinds of mistakes, as `kinds.yaml` has them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

_FILE = Path(__file__).with_name("kinds.yaml")


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of mistake is about, why it comes about, and what to do; all in Markdown. `also`: what people may
    take its id to be.
    """

    id: str
    topic: str
    about: str
    why: str
    do: tuple[str, ...]
    also: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Its text for a terminal."""
        yield f"{self.id}: {self.about}"
        yield from ("", f"Why: {self.why}", "", "What to do:")
        yield from (f"- {one}" for one in self.do)


@functools.cache
def kinds() -> Mapping[str, Kind]:
    """All kinds by their ids, in the order of the file."""
    topics = yaml.safe_load(_FILE.read_text("utf-8"))
    return {
        name: Kind(name, topic, texts["about"], texts["why"], tuple(texts["do"]), tuple(texts.get("also", ())))
        for topic, members in topics.items()
        for name, texts in members.items()
    }


def topics() -> dict[str, list[Kind]]:
    """The kinds of each topic."""
    found: dict[str, list[Kind]] = {}
    for kind in kinds().values():
        found.setdefault(kind.topic, []).append(kind)
    return found
