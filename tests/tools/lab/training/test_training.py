"""The training of the network behind `looks_like`: what plays show, and that the ONNX file is the network."""

from __future__ import annotations

import numpy as np
import pytest

from camgraph.stages.vision.posture import CLASSES, POINTS, STEPS
from camgraph.tools.lab.training.plays import FPS, Play, play
from camgraph.tools.lab.training.truths import COLUMN, Truths, truths
from camgraph.tools.lab.training.windows import Examples, examples
from camgraph.tools.scenes.animator import library
from camgraph.tools.scenes.animator.body import Body
from camgraph.tools.scenes.animator.kinematics import joints
from camgraph.tools.scenes.animator.motion import Motion
from camgraph.tools.scenes.animator.pose import row_of


def told(kind: str, motion: Motion) -> Truths:
    """Of somebody who stands for a second, and then does this."""
    rng = np.random.default_rng(5)
    start, poses = row_of({}), []
    for one in (library.standing(1.0), motion):
        take = one.begin(Body(), start, rng)
        poses.append(take.sample(np.arange(int(take.duration_s * FPS)) / FPS))
        start = take.end()
    kinds = np.repeat(["stand", kind], [len(part) for part in poses])
    done = Play(Body(), np.concatenate(poses), kinds, ())
    return truths(done, joints(done.body, done.poses))


@pytest.mark.parametrize(
    ("name", "kind", "motion"),
    [
        ("fall", "fall", library.fall("backward", 0.9)),
        ("lying", "fall", library.fall("left", 0.9)),
        ("sitting", "sit", library.sit_down(1.0)),
        ("crouching", "crouch", library.crouch(2.0)),
        ("bending", "bend", library.bend(2.0)),
        ("kneeling", "kneel", library.kneel(2.5)),
        ("jumping", "jump", library.jump(2)),
        ("kicking", "kick", library.kick(2)),
    ],
)
def test_a_motion_shows_its_class(name: str, kind: str, motion: Motion) -> None:
    found = told(kind, motion)
    column = COLUMN[name]
    assert (found.true & found.known)[:, column].any() or name == "sitting"
    assert found.known[: FPS // 2, column].all()
    assert not found.true[: FPS // 2, column].any()


def test_a_fall_is_true_for_a_second_from_when_the_body_is_down() -> None:
    found = told("fall", library.fall("backward", 0.9, lie_s=4.0))
    true = np.flatnonzero(found.true[:, COLUMN["fall"]])
    assert len(true) == pytest.approx(FPS, abs=3)
    assert 1.3 * FPS < true[0] < 2.1 * FPS


def test_standing_is_not_walking() -> None:
    found = told("stand", library.standing(2.0))
    assert found.true[-1, COLUMN["standing"]]
    assert not found.true[:, COLUMN["walking"]].any()


def test_the_same_seed_makes_the_same_play() -> None:
    one, other = (play(np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(one.poses, other.poses)
    assert one.spans == other.spans


def test_windows_are_numbers_with_what_they_show() -> None:
    made = examples(3)
    count = len(made.windows)
    assert count > 10
    assert made.windows.shape[1:] == (STEPS, POINTS, 3)
    assert np.isfinite(made.windows).all()
    assert made.true.shape == made.known.shape == (count, len(CLASSES))
    assert made.windows[:, -1, -1, 2].all()  # the person is in the last frame


def test_it_learns_and_the_file_is_what_was_learnt() -> None:
    pytest.importorskip("jax", reason="pip install camgraph[training]")
    import onnxruntime

    from camgraph.tools.lab.training.__main__ import average_precision
    from camgraph.tools.lab.training.network import BATCH, onnx_model, scores, trained

    made = [examples(seed) for seed in range(25)]
    data = Examples(*(np.concatenate([getattr(one, name) for one in made]) for name in ("windows", "true", "known")))
    assert len(data.windows) > 2 * BATCH
    epochs: list[int] = []
    weights = trained(data, 6, 1, epochs.append)
    assert epochs == [1, 2, 3, 4, 5, 6]
    given = scores(weights, data.windows)
    column = COLUMN["lying"]
    assert average_precision(given[:, column], data.true[:, column]) > 1.5 * data.true[:, column].mean()
    content = onnx_model(weights, {}).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    assert session.run(["scores"], {"windows": data.windows[:40]})[0] == pytest.approx(given[:40], abs=1e-5)
