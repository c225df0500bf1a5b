"""The network, its training in JAX, and its ONNX file.

    windows (N, 20, 57) -> three convolutions over time, the later two added to what came before
                        -> greatest, mean and last step -> 128 -> a score for each class

Several classes may be true at once, so each has its own logistic score. Moments of which a class is not known do not
count for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from camgraph.stages.vision.posture import CLASSES, POINTS, STEPS
from camgraph.tools.lab.training.windows import Examples
from camgraph.tools.scenes.animator.pose_model import SWAPPED

F32 = NDArray[np.float32]
Weights = dict[str, jax.Array]

CHANNELS = 64
HIDDEN = 128
BATCH = 256
_JOINTS = POINTS - 2
_DILATIONS = (1, 2, 4)
_LEARNING_RATE = 2e-3
_WARM_STEPS = 300
_DECAY = 1e-4
_SOFT = 0.01
"""Truths are so far from 0 and 1: some labels are wrong."""


def trained(data: Examples, epochs: int, seed: int, told: Callable[[int], object]) -> Weights:
    """The weights after so many epochs (Adam, with a cosine as the learning rate). `told`: called after each."""
    key, rng = jax.random.key(seed), np.random.default_rng(seed)
    weights = _first(key)
    moments = jax.tree.map(jnp.zeros_like, (weights, weights))
    count = len(data.windows)
    steps, number = epochs * (count // BATCH), 0
    for epoch in range(epochs):
        order = rng.permutation(count)
        for batch in range(count // BATCH):
            rows = np.sort(order[batch * BATCH : (batch + 1) * BATCH])
            number, (key, own) = number + 1, jax.random.split(key)
            rate = _LEARNING_RATE * (0.5 + 0.5 * np.cos(np.pi * number / steps)) * min(1, number / _WARM_STEPS)
            seen = data.windows[rows].astype(np.float32), data.true[rows], data.known[rows]
            weights, moments = _step(weights, moments, seen, own, rate=rate, number=number)
        told(epoch + 1)
    return weights


def scores(weights: Weights, windows: F32) -> F32:
    """(N, C)."""
    parts = np.array_split(windows, max(1, len(windows) // 2000))
    return np.concatenate([_scores(weights, part.astype(np.float32)) for part in parts])


_scores = jax.jit(lambda weights, windows: jax.nn.sigmoid(_logits(weights, windows)))


def _first(key: jax.Array) -> Weights:
    """Random weights, after He et al. (2015)."""
    shapes = {
        **{"conv1": (3, 3 * POINTS, CHANNELS), "conv2": (3, CHANNELS, CHANNELS), "conv3": (3, CHANNELS, CHANNELS)},
        **{"hidden": (3 * CHANNELS, HIDDEN), "classes": (HIDDEN, len(CLASSES))},
    }
    keys = jax.random.split(key, len(shapes))
    weights = {
        name: jax.random.normal(own, shape) * np.sqrt(2 / np.prod(shape[:-1]))
        for own, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    return weights | {f"{name}_bias": jnp.zeros(shape[-1]) for name, shape in shapes.items()}


def _logits(weights: Weights, windows: jax.Array, drop: jax.Array | None = None) -> jax.Array:
    steps = windows.reshape(len(windows), STEPS, 3 * POINTS)
    for number, dilation in enumerate(_DILATIONS, start=1):
        found = jax.nn.relu(_over_time(steps, weights[f"conv{number}"], dilation) + weights[f"conv{number}_bias"])
        steps = found if number == 1 else steps + found
    whole = jnp.concatenate([steps.max(1), steps.mean(1), steps[:, -1]], axis=1)
    if drop is not None:
        whole = whole * jax.random.bernoulli(drop, 0.8, whole.shape) / 0.8
    return (
        jax.nn.relu(whole @ weights["hidden"] + weights["hidden_bias"]) @ weights["classes"] + weights["classes_bias"]
    )


def _over_time(steps: jax.Array, kernel: jax.Array, dilation: int) -> jax.Array:
    padded = jnp.pad(steps, ((0, 0), (dilation, dilation), (0, 0)))
    parts = [padded[:, i * dilation : i * dilation + STEPS] @ kernel[i] for i in range(3)]
    return parts[0] + parts[1] + parts[2]


def _changed(windows: jax.Array, key: jax.Array) -> jax.Array:
    """Windows as they might also be: mirrored, turned, stretched, moved, and with joints that are not known."""
    keys = iter(jax.random.split(key, 8))
    count, places, known = len(windows), windows[..., :2], windows[..., 2:]
    joints, corners = places[:, :, :_JOINTS], places[:, :, _JOINTS:]
    known_joints, known_corners = known[:, :, :_JOINTS], known[:, :, _JOINTS:]
    mirrored = jax.random.bernoulli(next(keys), 0.5, (count, 1, 1, 1))
    joints = jnp.where(mirrored, joints[:, :, SWAPPED] * jnp.array([-1.0, 1.0]), joints)
    known_joints = jnp.where(mirrored, known_joints[:, :, SWAPPED], known_joints)
    other = jnp.stack([-corners[:, :, ::-1, 0], corners[..., 1]], axis=-1)
    corners = jnp.where(mirrored, other, corners)
    angle = jax.random.normal(next(keys), (count, 1, 1)) * 0.07
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    x, y = joints[..., 0], joints[..., 1]
    joints = jnp.stack([x * cosine - y * sine, x * sine + y * cosine], axis=-1)
    stretch = jnp.exp(jax.random.normal(next(keys), (count, 1, 1, 2)) * 0.05)
    size = jnp.exp(jax.random.normal(next(keys), (count, 1, 1, 1)) * 0.12)
    moved = jax.random.normal(next(keys), (count, 1, 1, 2)) * 0.08
    corners = corners + jax.random.normal(next(keys), (count, 1, 2, 2)) * 0.02
    places = jnp.concatenate([joints, corners], axis=2) * stretch * size + moved
    known_joints *= jax.random.bernoulli(next(keys), 0.94, (count, 1, _JOINTS, 1))
    known_joints *= jax.random.bernoulli(next(keys), 0.97, (count, STEPS, _JOINTS, 1))
    known = jnp.concatenate([known_joints, known_corners], axis=2)
    return jnp.concatenate([places * (known > 0), known], axis=3)


def _loss(weights: Weights, seen: tuple[jax.Array, jax.Array, jax.Array], key: jax.Array) -> jax.Array:
    windows, true, known = seen
    changing, dropping = jax.random.split(key)
    logits = _logits(weights, _changed(windows, changing), dropping)
    wanted = true * (1 - 2 * _SOFT) + _SOFT
    return ((jax.nn.softplus(logits) - logits * wanted) * known).sum() / known.sum()


def _adam_step(
    weights: Weights, moments: tuple[Weights, Weights], seen: Any, key: jax.Array, *, rate: float, number: int
) -> tuple[Weights, tuple[Weights, Weights]]:
    """One step of Adam (Kingma and Ba 2015) with decay of weights."""
    slopes = jax.grad(_loss)(weights, seen, key)
    first = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, moments[0], slopes)
    second = jax.tree.map(lambda old, new: 0.999 * old + 0.001 * new**2, moments[1], slopes)

    def stepped(weight: jax.Array, one: jax.Array, two: jax.Array) -> jax.Array:
        way = (one / (1 - 0.9**number)) / (jnp.sqrt(two / (1 - 0.999**number)) + 1e-8)
        return weight - rate * (way + _DECAY * weight)

    return jax.tree.map(stepped, weights, first, second), (first, second)


_step = jax.jit(_adam_step)


# ---- ONNX


def onnx_model(weights: Mapping[str, Any], about: Mapping[str, str]) -> onnx.ModelProto:
    """`windows` float32 (n, 20, 19, 3) -> `scores` (n, C). `about`: what its metadata says."""
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def constant(name: str, value: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    shape = constant("shape", np.array([0, STEPS, 3 * POINTS], np.int64))
    steps = node("Transpose", [node("Reshape", ["windows", shape], "rows")], "columns", perm=[0, 2, 1])
    for number, dilation in enumerate(_DILATIONS, start=1):
        name = f"conv{number}"
        kernel = constant(name, np.asarray(weights[name]).transpose(2, 1, 0))
        bias = constant(f"{name}_bias", np.asarray(weights[f"{name}_bias"]))
        found = node("Conv", [steps, kernel, bias], f"{name}_sum", dilations=[dilation], pads=[dilation, dilation])
        found = node("Relu", [found], f"{name}_out")
        steps = found if number == 1 else node("Add", [steps, found], f"steps{number}")
    axes = constant("axes", np.array([2], np.int64))
    greatest = node("ReduceMax", [steps, axes], "greatest", keepdims=0)
    mean = node("ReduceMean", [steps, axes], "mean", keepdims=0)
    last = node("Gather", [steps, constant("end", np.array(STEPS - 1, np.int64))], "last", axis=2)
    whole = node("Concat", [greatest, mean, last], "whole", axis=1)
    for name, source in (("hidden", whole), ("classes", "hidden_out")):
        parts = [constant(part, np.asarray(weights[part])) for part in (name, f"{name}_bias")]
        node("Gemm", [source, *parts], f"{name}_sum")
        node("Relu" if name == "hidden" else "Sigmoid", [f"{name}_sum"], "hidden_out" if name == "hidden" else "scores")
    graph = helper.make_graph(
        nodes,
        "looks",
        [helper.make_tensor_value_info("windows", TensorProto.FLOAT, ["n", STEPS, POINTS, 3])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", len(CLASSES)])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, {**about, "names": str(dict(enumerate(CLASSES)))})
    onnx.checker.check_model(model, full_check=True)
    return model
