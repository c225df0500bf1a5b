"""Rounds in which processes of a live run are harmed: their measurements and verdicts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from camgraph.tools.measuring.load import Load


@dataclass(frozen=True, slots=True)
class Round:
    """One process harmed. `noticed_s`: until a frozen one was killed; `back_s`: from the death until its successor had
    brought something through; `silent_s`: the longest time in which no frame of some camera came out of all stages,
    of the worst off (without the one whose own capture was harmed); `faults`: what was wrong, each in a sentence."""

    process: str
    back_s: float
    noticed_s: float = 0.0
    silent_s: float = 0.0
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Base:
    """While nothing is harmed: camera -> frames a second that came out of all stages, and that its capture read."""

    processed: Mapping[str, float]
    captured: Mapping[str, float]
    load: Load


@dataclass(slots=True)
class Series:
    """The rounds of one kind of process. `processed`, `captured`: camera -> its rate over that of `Base`, without the
    rounds in which its own capture was harmed. `load`: of the machine meanwhile."""

    kind: str
    rounds: list[Round] = field(default_factory=list)
    processed: Mapping[str, float] = field(default_factory=dict)
    captured: Mapping[str, float] = field(default_factory=dict)
    load: Load = field(default=Load(0, 0, 1))


@dataclass(frozen=True, slots=True)
class Count:
    """What a camera brought, `at_s`: frames that its capture read, and that came out of all stages."""

    at_s: float
    captured: int
    processed: int


def rates(
    marks: Sequence[Mapping[str, Count]], victims: Sequence[str], what: Literal["captured", "processed"]
) -> dict[str, float]:
    """Camera -> frames a second between the marks, without the rounds whose victim is the camera's capture.

    `marks` has one more than there are `victims`.
    """
    found = {}
    for camera in marks[0]:
        spans = [
            (before[camera], after[camera])
            for (before, after), victim in zip(pairwise(marks), victims, strict=True)
            if victim != f"capture.{camera}"
        ]
        seconds = sum(after.at_s - before.at_s for before, after in spans)
        if seconds:
            found[camera] = sum(getattr(after, what) - getattr(before, what) for before, after in spans) / seconds
    return found


def is_back(process: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a successor runs and has brought something through: frames of its camera, items of its stage."""
    kind, _, camera = process.partition(".")
    was, is_now = before["processes"][process], now["processes"][process]
    if is_now["state"] != "running" or is_now["pid"] in (0, was["pid"]):
        return False
    if kind == "capture":
        seen = now["cameras"][camera]
        return bool(seen["state"] == "live" and seen["frames"] > before["cameras"][camera]["frames"])
    return bool(now["stages"][kind]["items"] > before["stages"][kind]["items"])


def lost(process: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The cameras that were lost meanwhile, without the one whose capture was harmed."""
    return [
        camera
        for camera, seen in now["cameras"].items()
        if process != f"capture.{camera}" and seen["losses"] > before["cameras"][camera]["losses"]
    ]


def over(rate: Mapping[str, float], base: Mapping[str, float]) -> dict[str, float]:
    """Camera -> its share of its earlier rate; without those that had nothing."""
    return {camera: value / base[camera] for camera, value in rate.items() if base.get(camera)}


def pids(status: Mapping[str, Any]) -> dict[str, int]:
    return {name: process["pid"] for name, process in status["processes"].items()}
