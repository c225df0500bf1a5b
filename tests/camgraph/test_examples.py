"""Every example of docs/python.md, and that of the package itself, runs as a script of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest

import camgraph
from camgraph.tools.assets import asset_path
from camgraph.tools.scenes.simulator import CameraSettings, ClipSettings, RtspSimulator

Script = Callable[..., "Popen[str]"]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
FILES = dict(re.findall(r"```yaml\n# (\w+\.yaml)\n(.*?)```", PAGE, re.DOTALL))
_INDENTED = re.compile(r"^    import camgraph\n(?:(?:    .*)?\n)*", re.MULTILINE)
EXAMPLES = [
    *re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL),
    *map(textwrap.dedent, _INDENTED.findall(camgraph.__doc__ or "")),
]
FARM = "rtsp://127.0.0.1:8601/"
LONG_S = 240


def ran(process: Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, err
    return out.splitlines()


@pytest.fixture
def files(tmp_path: Path, name: str) -> None:
    """The files of the page."""
    for asset in ("vtest.avi", "movenet-multipose.onnx"):
        if not asset_path(asset).is_file():
            pytest.skip(f"no pulled {asset} (run: camgraph assets pull {asset})")
    for file, text in FILES.items():
        (tmp_path / file).write_text(text.replace("name: lobby", f"name: {name}\nprocesses: compact"))


@pytest.fixture
def light_model(files: None, tmp_path: Path, two_people: Path) -> None:
    """The graph of the page has a model that takes no time in place of the pulled one."""
    graph = tmp_path / "lobby.yaml"
    text = graph.read_text().replace("size: native, max_side: 512", "size: [64, 64]")
    graph.write_text(text.replace('"asset:movenet-multipose.onnx"', str(two_people)))
    assert str(two_people) in graph.read_text()


@pytest.mark.usefixtures("files")
def test_first_example_runs_with_the_files_of_the_page(script: Script) -> None:
    assert any("somebody" in line for line in ran(script(EXAMPLES[0])))


@pytest.mark.usefixtures("light_model")
@pytest.mark.parametrize("example", [text for text in EXAMPLES if FARM not in text])
def test_an_example_runs(example: str, script: Script, tmp_path: Path) -> None:
    lines = ran(script(example))
    assert lines or (tmp_path / "last.jpg").stat().st_size > 1000
    if "event.action" in example or "Event(action" in example:
        assert any("somebody" in line or "person" in line for line in lines), lines


def test_the_examples_have_the_types_that_they_say(tmp_path: Path) -> None:
    names = [f"example_{number}.py" for number in range(len(EXAMPLES))]
    for name, text in zip(names, EXAMPLES, strict=True):
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *names],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env={**os.environ, "MYPYPATH": str(ROOT / "src"), "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")},
    )
    assert done.stdout == f"Success: no issues found in {len(names)} source files\n"


@pytest.mark.usefixtures("files")
def test_the_example_of_live_cameras_runs(script: Script) -> None:
    [example] = [text for text in EXAMPLES if FARM in text]
    port = int(re.findall(r"camgraph farm --cameras 2 --port (\d+)", PAGE)[0])
    clip = ClipSettings(path=str(asset_path("vtest.avi")), width=384, height=288, fps=5, seconds=10)
    with RtspSimulator([CameraSettings(name=name, clip=clip) for name in ("cam1", "cam2")]) as farm:
        for number, camera in enumerate(farm.cameras):
            address = f"rtsp://127.0.0.1:{port + number}/{camera.name}"  # as `camgraph farm` of the page gives them
            assert address in example
            example = example.replace(address, camera.url)
        lines = ran(script(example))
    assert len(lines) == 22
    assert lines[-1].startswith("Result(status=0, problems=()")
