"""Rules judged over animated people: which of them fire, and when.

    trial = Trial("falling forward", View(height_m=2.6, distance_m=5.0, bearing_deg=30.0), fps=8.0)
    firings(rules_of(["fall"]), pictures(trial))   ->   [Firing("fall", 2.4, (1,))]

`pictures` gives all people their true identity, so a trial measures the rule and not the tracker. In `followed`, the
stage `track` follows the people, as in a run. Until `LEAD_S`, each person waits in the first posture of the motion, so
that conditions which look back have a past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from camgraph.pipeline.single_stage import feed, opened
from camgraph.stages.messages import Tracks
from camgraph.stages.people.track import Track
from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.language.judge import Judge
from camgraph.stages.rules.onlooker import picture_of
from camgraph.stages.rules.rule_set import RuleSet, parse_rules
from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.tools.scenes.animator import Actor, Camera, PoseModel, Scene
from camgraph.tools.scenes.animator.library import MOTIONS, starts_in, waiting
from camgraph.tools.scenes.animator.messages import people, tracks
from camgraph.tools.scenes.animator.pose_model import MULTIPOSE, YOLO11N
from camgraph.tools.scenes.animator.scene import Seen

LEAD_S = 1.5
"""How long a person waits in the posture in which the motion begins."""
AFTER_S = 4.5
"""How long the scene goes on after the motion, or after the person is lost."""


Edge = Literal["", "left", "right", "bottom"]
NEAR_EDGE = 0.42
"""Distance from the middle of the picture, in widths of the picture."""
WAIST_M, KNEES_M = 0.9, 0.5
LEAST_SCORE = 0.15
"""Detections with a lower score show no person. A tracker follows a known person down to about this score."""


@dataclass(frozen=True)
class View:
    """A camera that looks at the place where a person acts. `bearing_deg`: 0 from the front, 90 from the left.

    With an `edge`, the person acts near that border of the picture. Near the right or left border the picture still
    shows the whole person; the bottom border cuts the legs off at about the knees.
    """

    height_m: float = 2.6
    distance_m: float = 5.0
    bearing_deg: float = 30.0
    mirrored: bool = False
    edge: Edge = ""

    @property
    def camera(self) -> Camera:
        aim_m = KNEES_M if self.edge == "bottom" else WAIST_M
        camera = Camera(height_m=self.height_m, mirrored=self.mirrored).at(self.distance_m, self.bearing_deg, aim_m)
        width, height = camera.size
        if self.edge == "bottom":
            up = float(np.degrees(np.arctan(height / 2 / camera.focal_px)))
            return replace(camera, tilt_deg=camera.tilt_deg - up)
        aside = float(np.degrees(np.arctan(NEAR_EDGE * width / camera.focal_px)))
        turned = {"": 0.0, "left": -aside, "right": aside}[self.edge]
        return replace(camera, heading_deg=camera.heading_deg + turned)

    def __str__(self) -> str:
        where = f", near the {self.edge} border" if self.edge else ""
        return f"{self.height_m:g} m high, {self.distance_m:g} m away, from {self.bearing_deg:g} degrees{where}"


@dataclass(frozen=True)
class Trial:
    """One person who does one motion of the animator's library once.

    `lead_s`: when the motion starts, which need not be the time of a frame. `gone_s`: how long after that the person
    is lost.
    """

    motion: str
    view: View = View()
    fps: float = 12.5
    model: PoseModel = YOLO11N
    seed: int = 0
    gone_s: float | None = None
    lead_s: float = LEAD_S

    @property
    def scene(self) -> Scene:
        motions = [waiting(self.lead_s), *MOTIONS[self.motion]()]
        gone_s = float("inf") if self.gone_s is None else self.lead_s + self.gone_s
        actor = Actor(motions, posture=starts_in(self.motion), gone_s=gone_s)
        scene = Scene(self.motion, [actor])
        return replace(scene, duration_s=min(scene.length_s(self.seed), gone_s) + AFTER_S)


@dataclass(frozen=True)
class Firing:
    """The start of an incident, `at_s` seconds after the scene began."""

    rule: str
    at_s: float
    ids: tuple[int, ...]


def pictures(trial: Trial) -> list[Picture]:
    """The frames of a trial, as the rules see them."""
    frames = trial.scene.frames(trial.fps, trial.seed, trial.view.camera, trial.model)
    return [picture_of(item) for item in tracks(frames, min_score=LEAST_SCORE)]


def followed(frames: Iterable[Seen], model: PoseModel) -> Iterator[Picture]:
    """The frames of a scene as the rules see them in a run: with the ids, and the mistakes, of the stage `track`.

    The settings of `track` follow the scores that `decode` reports for the model.
    """
    usual = score_range("movenet_multipose" if model.name == MULTIPOSE.name else "yolo_pose")
    scores = {f"{name}_score": getattr(usual, name) for name in ("good", "weak", "new", "sure")}
    with opened(Track, scores, folder=Path()) as stage:
        for item in people(frames):
            yield from (picture_of(found) for found in feed(stage, [item]) if isinstance(found, Tracks))


def run(trial: Trial) -> Iterator[Picture]:
    """The frames of a trial, as the rules see them in a run."""
    return followed(trial.scene.frames(trial.fps, trial.seed, trial.view.camera, trial.model), trial.model)


def firings(rules: RuleSet, frames: Iterable[Picture]) -> list[Firing]:
    """The incidents that begin in these frames."""
    ready = [one.rule for one in rules.of_camera("cam")]
    judge = Judge(ready, lambda size: rules.surroundings("cam", size))
    return [
        Firing(verdict.rule.id, picture.time_ns / 1e9, verdict.ids)
        for picture in frames
        for verdict in judge.judge(picture)
        if verdict.phase == "start"
    ]


def rules_of(actions: Sequence[str]) -> RuleSet:
    """These actions of the library with the values that they have by default."""
    rules = "".join(f"  - {{use: {name}}}\n" for name in actions)
    return parse_rules(f"version: 1\nrules:\n{rules}", "library")
