"""Why the library's actions fired, as mails, chats and the page say it: in words that need no rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from camgraph.pipeline.testing import feed, opened
from camgraph.stages.events import CloudEvent
from camgraph.stages.rules.rules import Rules
from camgraph.stages.sinks.delivery.event_view import view_of
from camgraph.stages.sinks.delivery.template import filled
from camgraph.tools.lab.action_cases import CASES
from camgraph.tools.lab.action_trials import LEAST_SCORE, Trial, View
from camgraph.tools.scenes.animator.messages import tracks

pytestmark = pytest.mark.slow
SEEN: Mapping[str, str] = {name: next(iter(case.fires)) for name, case in CASES.items() if case.fires}


def why(action: str, motion: str, folder: Path) -> tuple[str, list[str]]:
    """`{why}` of the first incident, and its conditions as the rule has them."""
    for seed in range(8):
        trial = Trial(motion, View(2.6, 5.0, 30.0 + 60.0 * (seed % 2)), seed=seed)
        frames = trial.scene.frames(trial.fps, trial.seed, trial.view.camera, trial.model)
        own = folder / str(seed)
        own.mkdir()
        with opened(Rules, {"rules": [{"use": action}]}, folder=own) as stage:
            events = feed(stage, list(tracks(frames, min_score=LEAST_SCORE)))
        if events:
            evidence = CloudEvent.model_validate_json(events[0].body).data.evidence
            assert evidence is not None
            return filled("{why}", view_of(events[0]), "UTC"), [one.text for one in evidence.conditions]
    raise AssertionError(f"{action} never fires")


def test_a_fall_says_when_somebody_fell(tmp_path: Path) -> None:
    words, _ = why("fall", "falling forward", tmp_path)
    assert re.fullmatch(r"(Has|Seems to have) fallen [\d.]+ s earlier", words), words


@pytest.mark.parametrize("action", SEEN)
def test_nobody_has_to_read_a_rule(action: str, tmp_path: Path) -> None:
    words, texts = why(action, SEEN[action], tmp_path)
    assert not re.search(r"[<>=*+/?]|\bthen\b|not known", words), words
    for text in texts:
        assert text.count("(") == text.count(")"), text
