"""`looks_like` in rules: what the network that comes with camgraph says, and of whom; and who never asks it."""

from __future__ import annotations

import math
import subprocess
import sys
from importlib.resources import files

import numpy as np
import onnx
import pytest

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.messages import Stamp
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.language.judge import Judge
from camgraph.stages.rules.onlooker import picture_of
from camgraph.stages.rules.posture_network import FILE, posture_network
from camgraph.stages.rules.rule_set import RuleSet, parse_rules
from camgraph.stages.vision.posture import CLASSES, POINTS, STEPS
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.pose_model import MULTIPOSE
from camgraph.tools.scenes.animator.scenes import motion_alone

CAMERA = Camera(height_m=2.6).at(5.5, 50.0)
MOST_PARAMETERS, MOST_BYTES = 500_000, 2_000_000


def rules(when: str) -> RuleSet:
    return parse_rules(f"version: 1\nrules:\n  - {{id: seen, when: '{when}'}}\n", "rules.yaml")


def told(motion: str, when: str, *, alone: bool = False, rate: float = 10.0) -> bool:
    """Whether the rule begins an incident while somebody does this before a camera."""
    ruled = rules(when)
    judge = Judge([ready.rule for ready in ruled.rules.values()], lambda size: ruled.surroundings("cam", size))
    for number, seen in enumerate(motion_alone(motion).frames(rate, 3, CAMERA, MULTIPOSE)):
        at = seen.time_ns
        stamp = Stamp("cam", 0, number, at, at, at, at, alone=alone)
        ids = np.arange(1, 1 + min(1, len(seen.boxes)))
        one = Tracks(
            stamp, seen.boxes[:1], seen.scores[:1], seen.keypoints[:1], seen.frame_size, np.zeros(len(ids), np.int64),
            "coco-17", ids=ids, continues=np.zeros(len(ids), np.int64),
        )  # fmt: skip
        if any(verdict.phase == "start" for verdict in judge.judge(picture_of(one))):
            return True
    return False


def test_the_model_is_small_and_names_its_classes() -> None:
    content = files("camgraph.stages.rules").joinpath(FILE).read_bytes()
    model = onnx.load_model_from_string(content)
    assert dict(enumerate(CLASSES)) == eval({one.key: one.value for one in model.metadata_props}["names"])
    assert sum(math.prod(one.dims) for one in model.graph.initializer) < MOST_PARAMETERS
    assert len(content) < MOST_BYTES


def test_each_window_is_answered_by_itself() -> None:
    windows = np.random.default_rng(1).normal(0, 0.3, (7, STEPS, POINTS, 3)).astype(np.float32)
    together = posture_network()(windows)
    assert together.shape == (7, len(CLASSES))
    for row, window in enumerate(windows):
        assert posture_network()(window[None])[0] == pytest.approx(together[row], abs=1e-5)


@pytest.mark.parametrize("motion", ["falling forward", "falling backward", "falling sideways", "slumping"])
def test_a_fall_looks_like_one(motion: str) -> None:
    assert told(motion, "looks_like(fall) > 0.7")


@pytest.mark.parametrize("motion", ["standing", "walking", "sitting down", "bending", "lying down on the back"])
def test_other_motions_do_not(motion: str) -> None:
    assert not told(motion, "looks_like(fall) > 0.7")


def test_a_photograph_shows_no_motion() -> None:
    assert not told("falling sideways", "looks_like(standing) > 0.01", alone=True)
    assert not told("falling sideways", "not looks_like(standing) > 0.01", alone=True)


def test_it_can_be_asked_in_a_word_of_a_pair() -> None:
    text = (
        "version: 1\ndefine: {down: looks_like(lying) > 0.5}\n"
        "rules: [{id: helps, scope: pair, when: a.down and not b.down}]"
    )
    assert parse_rules(text, "rules.yaml").rules["helps"].rule.asks_network


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("looks_like(fal) > 0.5", "`looks_like` knows no class `fal`; did you mean `fall`?"),
        ("looks_like(zzz) > 0.5", "`looks_like` knows no class `zzz`; known: fall, lying"),
        ("looks_like(fall)", "is a bare number"),
        ("looks_like() > 0.5", "expected looks_like(fall)"),
        ("looks_like(fall, lying) > 0.5", "expected looks_like(fall)"),
    ],
)
def test_mistakes_are_told(when: str, said: str) -> None:
    with pytest.raises(GraphError) as raised:
        rules(when)
    assert said in str(raised.value)


def test_a_comparison_that_is_never_true_is_remarked() -> None:
    assert "`looks_like(fall)` is from 0 to 1" in rules("looks_like(fall) > 1.5").remarks[0]


def test_rules_that_do_not_ask_load_no_runtime() -> None:
    code = (
        "import sys; from camgraph.stages.rules.rule_set import parse_rules\n"
        "ruled = parse_rules('version: 1\\nrules: [{id: a, when: score > 0.5}]', 'x')\n"
        "assert ruled.surroundings('cam', (640, 480)).network is None\n"
        "print('onnxruntime' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
