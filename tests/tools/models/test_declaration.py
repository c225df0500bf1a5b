"""What a person says of a model whose layout does not show, read alike by all commands of `camgraph model`."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from camgraph_test_stages.commands import model_command

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.contracts import InputSettings
from camgraph.stages.people.inference.infer_settings import InferSettings
from camgraph.stages.people.inference.selection.automatic import Choice
from camgraph.stages.vision.recognition import Declared
from camgraph.tools.models import automatic_choice
from camgraph.tools.models.chain import Chain, model_inputs
from camgraph.tools.models.compare import comparison, memory
from camgraph.tools.models.declaration import Declaration, DeclaredModel
from camgraph.tools.models.declaration_options import declared_models

TWO_READINGS = "(out ['n', 84, 56]) can be read as "


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    cv2.imwrite(str(tmp_path / "p.png"), np.full((48, 64, 3), (200, 100, 50), np.uint8))
    return tmp_path / "p.png"


def options(**reported: list[tuple[str | None, object]]) -> dict[str, list[tuple[str | None, object]]]:
    return {
        **{name: [] for name in ("format", "keypoints", "outputs", "layout", "order", "scale", "mean", "std", "size")},
        **reported,
    }


def test_option_of_one_model_precedes_that_of_all(turned_model: Path) -> None:
    other = turned_model.with_name("other.onnx")
    other.write_bytes(turned_model.read_bytes())
    reported = options(format=[(None, "yolo_pose"), (str(other), "yolox")], size=[(str(other), (64, 32))])
    one, two = declared_models([str(turned_model), str(other)], reported)
    assert one == DeclaredModel(turned_model, Declaration(Declared("yolo_pose")))
    assert two == DeclaredModel(other, Declaration(Declared("yolox"), size=(64, 32)))


def test_a_statement_is_settings_of_infer() -> None:
    reported = Declaration(Declared("yolo_pose", 17), InputSettings(order="bgr", scale=1.0), (640, 384))
    settings = InferSettings.model_validate({"model": "m.onnx", **reported.infer})
    assert (settings.declared, settings.input, settings.picture_size) == (reported.kind, reported.input, reported.size)
    assert Declaration().infer == {}


@pytest.mark.processes
def test_frames_are_prepared_by_what_is_declared(turned_model: Path, picture: Path) -> None:
    """A YOLOX takes BGR from 0 to 255, and the frame in the upper left corner."""
    inputs = {}
    for name in ("yolo_pose", "yolox"):
        model = DeclaredModel(turned_model, Declaration(Declared(name)))  # type: ignore[arg-type]
        [given] = model_inputs(model, [str(picture)], 1)
        inputs[name] = given["images"][0]
    np.testing.assert_allclose(inputs["yolo_pose"][:, 32, 32] * 255, [50, 100, 200], atol=1)
    np.testing.assert_allclose(inputs["yolox"][:, 0, 32], [200, 100, 50], atol=1)
    assert inputs["yolo_pose"][0, 0, 32] == pytest.approx(114 / 255)


def test_a_model_of_any_size_gets_pictures_of_the_declared_one(tiny_model: Path, turned_model: Path) -> None:
    with pytest.raises(UserError, match=r"--size 64x48: .*turned\.onnx takes pictures of 64x64"):
        DeclaredModel(turned_model, Declaration(Declared("yolox"), size=(64, 48))).contract()
    with pytest.raises(UserError, match="takes pictures of 32x32"):
        DeclaredModel(tiny_model, Declaration(size=(64, 48))).contract()


def test_a_chain_reads_the_model_as_it_is_told(turned_model: Path) -> None:
    with Chain(turned_model, format="yolo_pose") as chain:
        assert (chain.reading.format, chain.reading.keypoints) == ("yolo_pose", 17)
    with pytest.raises(UserError, match=r"can be read as .* \(on the command line: --format"), Chain(turned_model):
        pass


def test_compare_needs_to_be_told_what_a_model_is(
    turned_model: Path, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(comparison, "peak_bytes", lambda model, **reported: asked.append(reported))
    monkeypatch.setattr(comparison, "_ROUND_S", 0.01)
    files = [turned_model, turned_model, "--frames", picture, "--least-frames", 1]
    result = model_command("compare", *files)
    assert result.exit_code == 2
    assert TWO_READINGS in result.output
    assert "--format" in result.output
    result = model_command("compare", *files, "--format", "yolo_pose", "--keypoints", f"{turned_model}=17")
    assert result.exit_code == 0, result.output
    assert asked[-1]["format"] == "yolo_pose"


def test_compare_takes_what_auto_takes_for_the_first_model(
    turned_model: Path, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automatic_choice, "choose", lambda *_: Choice(("cpu",), {"cuda": "no GPU"}))
    asked = []
    monkeypatch.setattr(comparison, "peak_bytes", lambda model, **given: asked.append(given["providers"]))
    monkeypatch.setattr(comparison, "_ROUND_S", 0.01)
    given = ["--format", "yolo_pose", "--frames", picture, "--least-frames", 1, "--providers", "auto"]
    result = model_command("compare", turned_model, turned_model, *given)
    assert result.exit_code == 0, result.output
    assert asked == [("cpu",), ("cpu",)]
    assert "auto takes cpu: " in result.stderr
    assert "not cuda: no GPU" in result.stderr


@pytest.mark.processes
def test_memory_is_measured_of_the_model_as_it_is_told(turned_model: Path) -> None:
    assert memory.peak_bytes(turned_model, **Declaration(Declared("yolo_pose"), size=(64, 64)).infer) > 30e6


@pytest.mark.processes
def test_quantize_bench_and_profile_take_the_same(turned_model: Path, picture: Path) -> None:
    given = ["--format", "yolox", "--layout", "nchw", "--size", "64x64"]
    runs = ["--runs", 1, "--seconds", 1]
    assert model_command("profile", turned_model, *given, *runs, "--frames", picture).exit_code == 0
    for command in (
        ["quantize", turned_model, "o.onnx", "--frames", picture],
        ["bench", turned_model],
        ["inspect", turned_model],
    ):
        wrong = model_command(*command, "--format", "movenet_single")
        assert wrong.exit_code == 2
        assert "are not those of `format: movenet_single`; without it they are read as" in wrong.output


def test_inspect_says_what_it_would_be(turned_model: Path) -> None:
    assert (
        f"camgraph does not recognise it: its outputs {TWO_READINGS}" in model_command("inspect", turned_model).output
    )
    result = model_command("inspect", turned_model, "--format", "yolox")
    assert "camgraph takes it for yolox" in result.output
    assert "bgr, pixel x 1, 64 x 64" in result.output


MISTAKES = {
    ("--format", "yolov8"): "--format yolov8: expected one of yolo_pose",
    ("--format", "b.onnx=yolox"): "--format b.onnx=...: there is no such model here; expected one of turned.onnx",
    ("--size", "turned.onnx=9x9"): "--size 9x9: expected WIDTHxHEIGHT, such as 640x480, with sides of 16 to 8192",
    ("--order", "turned.onnx=rbg"): "'rbg' is not one of 'rgb', 'bgr'",
}


@pytest.mark.parametrize("reported", MISTAKES)
def test_mistakes(turned_model: Path, monkeypatch: pytest.MonkeyPatch, reported: tuple[str, str]) -> None:
    monkeypatch.chdir(turned_model.parent)
    result = model_command("compare", "turned.onnx", "turned.onnx", "--frames", ".", *reported)
    assert result.exit_code == 2
    assert MISTAKES[reported] in result.output
