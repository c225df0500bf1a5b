"""How much memory a model takes, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.stages.vision.recognition import Declared
from camgraph.tools.models.compare.memory import peak_bytes
from camgraph.tools.models.declaration import Declaration


@pytest.mark.processes
def test_nothing_of_the_folder_that_one_stands_in_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turned_model: Path
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a file of the current folder was run')")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    taken = peak_bytes(turned_model, **Declaration(Declared("yolo_pose"), size=(64, 64)).infer)
    assert taken is not None
    assert taken > 30e6
