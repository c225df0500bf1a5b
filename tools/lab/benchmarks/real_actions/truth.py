"""What really happens in clips: the file `truth.yaml` beside them.

    clips:
    - file: room.mp4
      source: 'SOURCE @ version : path'
      right_actions: [fall, lying]
      events:
      - {action: fall, start_s: 3.7, end_s: 4.75, down_until_s: 8.76, sure: true}

Seconds of the clip; its first frame is 0. A fall begins when the balance is lost and ends when the body is down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from camgraph.pipeline.errors import UserError

TRUTH = "truth.yaml"
FALL = "fall"
EARLY_S, LATE_S = 0.5, 2.0
"""An incident of an event is told so much before its beginning at the earliest, and after its end at the latest."""


class _Read(BaseModel):
    """Other keys are for people who read the file."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Happening(_Read):
    """Something that somebody does. `sure`: without it, the event is neither missed nor are reports of it false."""

    action: str
    start_s: float
    end_s: float
    down_until_s: float | None = None
    sure: bool = True

    def is_told_at(self, at_s: float) -> bool:
        """Whether an incident that is told then is one of this event."""
        return self.start_s - EARLY_S <= at_s <= self.over_s + LATE_S

    @property
    def over_s(self) -> float:
        """When nothing of it is seen any more: of a fall, when somebody is no longer down."""
        return self.end_s if self.down_until_s is None else self.down_until_s


class Clip(_Read):
    """A clip and all that happens in it. `right_actions`: what a program that is right may report of it; `people`: how
    many there are in it at once, at most."""

    file: str
    source: str
    duration_s: float
    right_actions: tuple[str, ...] = ()
    people: int | None = None
    events: tuple[Happening, ...] = ()

    @property
    def stem(self) -> str:
        return Path(self.file).stem

    @property
    def origin(self) -> str:
        """The source of a clip: clips of one source are alike."""
        return self.source.partition(" @")[0]

    @property
    def named(self) -> set[str]:
        """The actions that the truth of this clip names."""
        return {*self.right_actions, *(one.action for one in self.events)}

    def of(self, action: str, *, sure: bool) -> list[Happening]:
        return [one for one in self.events if one.action == action and one.sure is sure]


class _File(_Read):
    clips: tuple[Clip, ...]


def read_truth(folder: Path) -> list[Clip]:
    """The clips of a folder that are there. Raises UserError."""
    path = folder / TRUTH
    try:
        # The C loader reads ten times as fast, and takes the same.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        data = yaml.load(path.read_text("utf-8"), loader)  # noqa: S506 - both are safe loaders
        clips = _File.model_validate(data).clips
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; expected the truth beside the clips") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise UserError(f"{path}: cannot be read as the truth of clips: {error}") from error
    return [clip for clip in clips if (folder / clip.file).is_file()]


@dataclass(frozen=True)
class Fold:
    """Clips of some origins; no other fold has clips of these."""

    number: int
    origins: Sequence[str]

    def __contains__(self, clip: Clip) -> bool:
        return clip.origin in self.origins


def folds_of(clips: Iterable[Clip], count: int) -> list[Fold]:
    """Folds with about as many falls each: what is tuned on some of them is tested on others, from other rooms.

    The same clips are always divided in the same way.
    """
    weight: dict[str, tuple[int, int]] = {}
    for clip in clips:
        falls, number = weight.get(clip.origin, (0, 0))
        weight[clip.origin] = (falls + len(clip.of(FALL, sure=True)), number + 1)
    origins: list[list[str]] = [[] for _ in range(count)]
    for origin in sorted(weight, key=lambda one: (*(-part for part in weight[one]), one)):
        lightest = min(origins, key=lambda some: _together(weight, some))
        lightest.append(origin)
    return [Fold(number, tuple(some)) for number, some in enumerate(origins, start=1)]


def _together(weight: Mapping[str, tuple[int, int]], origins: Iterable[str]) -> tuple[int, int]:
    falls, clips = 0, 0
    for origin in origins:
        falls, clips = falls + weight[origin][0], clips + weight[origin][1]
    return falls, clips
