"""Counts of people over a line, or in a zone: what conditions about a scene may ask of the past of a whole camera."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from camgraph.stages.rules.language.people import Person

Of = Literal["line", "zone"]
FIELDS: Mapping[Of, Mapping[str, str]] = {
    "line": {"rightward": "forward", "leftward": "backward", "inside": "inside"},
    "zone": {"entered": "forward", "left": "backward", "inside": "inside"},
}
"""The names that conditions use for the numbers of a counter."""


@dataclass(slots=True)
class Counter:
    """How many went over a line to its right (`forward`) and to its left, or into a zone and out of it.

    `inside`: of a line, how many more went rightward than leftward, never less than 0; of a zone, who is in it now.
    """

    of: Of
    shape: str
    forward: int = 0
    backward: int = 0
    inside: int = 0

    def step(self, people: Iterable[Person]) -> None:
        """Take the people of the next frame."""
        if self.of == "zone":
            self.inside = 0
        for person in people:
            self._count(person)

    def _count(self, person: Person) -> None:
        if self.of == "zone":
            step = person.entered.get(self.shape, 0)
            self.inside += bool(person.inside.get(self.shape))
        else:
            step = person.crossed.get(self.shape, 0)
            self.inside = max(0, self.inside + step)
        if step > 0:
            self.forward += 1
        elif step < 0:
            self.backward += 1

    @property
    def numbers(self) -> dict[str, int]:
        """By the names that conditions use."""
        return {name: getattr(self, of) for name, of in FIELDS[self.of].items()}

    def named(self, forward: int, backward: int) -> dict[str, int]:
        """How many went each way, by the names that conditions use."""
        one, other, _ = FIELDS[self.of]
        return {one: forward, other: backward}

    def reset(self) -> None:
        """Begin at zero."""
        self.forward = self.backward = self.inside = 0
