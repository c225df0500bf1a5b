"""Recipes that are printed, and run by nobody here."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from camgraph.tools.assets.catalogue import find
from camgraph.tools.cli import main
from camgraph.tools.models.convert.export_recipes import family_of

NAMES = {
    "yolo11n-pose": "Ultralytics' exporter",
    "runs/train/weights/yolov8s-pose.pt": "Ultralytics' exporter",
    "YOLO26n": "Ultralytics' exporter",
    "yolo_nas_pose_s": "super-gradients' exporter",
    "yolo-nas-pose-l": "super-gradients' exporter",
    "rtmo-m": "mmdeploy",
    "movenet-multipose": "camgraph's own conversion",
    "rtmo": None,
    "yolox_nano": None,
    "resnet50": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_who_exports_what(name: str) -> None:
    family = family_of(name)
    assert (family and family.name) == NAMES[name]


def commands(*arguments: str) -> list[list[str]]:
    result = CliRunner().invoke(main, ["model", "export", *arguments])
    assert result.exit_code == 0, result.output
    lines = result.output.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def test_weights_size_and_what_follows_are_in_the_commands() -> None:
    lines = commands("weights/yolo11n-pose.pt", "--size", "640x384", "--half", "--nms")
    assert lines[1][:2] == ["export/bin/yolo", "export"]
    assert {"model=weights/yolo11n-pose.pt", "imgsz=384,640", "dynamic=True", "nms=True"} <= set(lines[1])
    out, half, ready = (f"weights/yolo11n-pose{end}.onnx" for end in ("", "-fp16", "-ready"))
    assert lines[-3] == ["camgraph", "model", "fp16", out, half]
    assert lines[-2] == ["camgraph", "model", "prepare", half, ready]
    assert lines[-1][:5] == ["camgraph", "model", "compare", out, ready]


@pytest.mark.parametrize("name", [name for name, family in NAMES.items() if family])
def test_commands_of_camgraph_are_ones_that_it_has(name: str) -> None:
    own = [words for words in commands(name, "--half", "--nms") if words[0] == "camgraph"]
    assert own
    for _, group, command, *words in own:
        told = CliRunner().invoke(main, [group, command, "--help"])
        assert told.exit_code == 0
        assert all(word in told.output for word in words if word.startswith("--"))


@pytest.mark.parametrize("name", ["movenet", "movenet-multipose", "movenet-thunder.onnx"])
def test_assets_of_recipes_are_ones_that_there_are(name: str) -> None:
    pull, inspect, *_ = commands(name)
    assert pull[:3] == ["camgraph", "assets", "pull"]
    assert find(pull[3]).name.startswith(name)
    assert inspect[3] == f"asset:{pull[3]}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resnet50"], "resnet50: there is no recipe for it; known are yolo11n-pose"),
        (["yolo11n", "--size", "640"], "--size 640: expected WIDTHxHEIGHT"),
        (["yolo1n-pose"], "; did you mean `yolo11n-pose`?"),
        (["yolo-nas-pos-s"], "; did you mean `yolo_nas_pose_s`?"),
        (
            ["yolo11n", "--size", "641x640"],
            "--size 641x640: yolo11n takes sides that are multiples of 32: 640x640, 672x640\n",
        ),
        (["yolo11n", "--size", "20x700"], "multiples of 32: 32x672, 32x704\n"),
        (["yolov8x-pose-p6.pt", "--size", "640x672"], "multiples of 64: 640x640, 640x704\n"),
    ],
)
def test_mistakes(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["model", "export", *arguments])
    assert result.exit_code == 2
    assert words in result.output
