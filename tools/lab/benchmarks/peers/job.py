"""The job of a contestant, and its answer. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

_GPU_BATCH = 8


@dataclass(frozen=True, slots=True)
class Job:
    """The same for all. ``clips``: a video file for each camera, with ``frames`` frames each; ``size``: width and
    height of the model's picture; ``threads``: cores that there are, or how many runs a GPU has at once; ``provider``:
    who runs the model.
    """

    model: str
    clips: Sequence[str]
    frames: int
    size: tuple[int, int]
    min_score: float
    iou: float
    threads: int
    provider: Literal["cpu", "cuda"] = "cpu"

    @property
    def cameras(self) -> int:
        """How many."""
        return len(self.clips)

    @property
    def all_frames(self) -> int:
        """Of all cameras."""
        return self.frames * self.cameras

    @property
    def batch(self) -> int:
        """Pictures of a run, at most: more than one is no faster on processors."""
        return 1 if self.provider == "cpu" else min(self.cameras, _GPU_BATCH)

    def to_json(self) -> str:
        """The job as JSON for a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The way back."""
        values = json.loads(text)
        return cls(**{**values, "size": tuple(values["size"])})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a contestant did. The model was loaded and had run once at ``begun_ns``, and no clip was open; the last
    result was there at ``ended_ns`` (both CLOCK_MONOTONIC). ``frames`` and ``people``: results, and people in them, of
    each camera; ``latencies_ms``: of frames, from decoded to result, where it is known; ``versions``: of packages.
    """

    begun_ns: int
    ended_ns: int
    frames: Sequence[int]
    people: Sequence[int]
    latencies_ms: Sequence[float] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long the job took."""
        return (self.ended_ns - self.begun_ns) / 1e9

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_output(cls, output: str) -> Answer:
        """From all that a program has written: its last line that is an object. Raises ValueError."""
        for line in reversed(output.splitlines()):
            if line.startswith("{"):
                return cls._from_object(json.loads(line))
        raise ValueError("it gave no answer")

    @classmethod
    def _from_object(cls, values: Mapping[str, Any]) -> Answer:
        try:
            answer = cls(**values)
        except TypeError as error:
            raise ValueError(f"its answer is none: {error}") from None
        if answer.ended_ns <= answer.begun_ns:
            raise ValueError("it ended before it began")
        return answer
