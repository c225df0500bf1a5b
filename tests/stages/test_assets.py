"""What is said of assets that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.stages.assets import CLIPS, MODELS
from camgraph.stages.people.inference.model.model_files import find_model
from camgraph.stages.video.inspection import what_is_wrong
from camgraph.tools.assets.catalogue import CATALOGUE


def test_the_names_are_those_of_the_catalogue() -> None:
    assert {asset.name for asset in CATALOGUE} == {*MODELS, *CLIPS}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("movenet-thunder.onnx", "get it with `camgraph assets pull movenet-thunder.onnx`"),
        ("movenet-thunder", "has no asset of this name, but movenet-multipose.onnx, movenet-lightning.onnx, movenet-"),
        ("movenet-thunder", "; did you mean `movenet-thunder.onnx`?"),
        ("nosuch.onnx", "`camgraph assets pull` has no asset of this name, but movenet-multipose.onnx"),
    ],
)
def test_a_model_that_is_not_there(name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError) as caught:
        find_model(f"asset:{name}", tmp_path)
    assert words in str(caught.value)


def test_a_clip_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "get it with `camgraph assets pull vtest.avi`" in what_is_wrong("asset:vtest.avi", tmp_path)
    assert "did you mean `vtest.avi`?" in what_is_wrong("asset:vtset.avi", tmp_path)
