"""Which folders camgraph uses, by what the environment says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.paths import (
    asset_folder,
    lost_home,
    other_runs_folders,
    resolve,
    resolve_output,
    resolve_output_path,
    runs_folder,
    state_folder,
    what_moves_assets,
    why_no_output,
    why_no_path,
)
from camgraph.stages.assets import CLIPS, how_to_get
from camgraph.tools.assets.catalogue import CATALOGUE
from camgraph.tools.cli import main


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RUN_DIR", "STATE_DIR", "CACHE_DIR"):
        monkeypatch.delenv(f"CAMGRAPH_{name}", raising=False)
    for name in ("CACHE_DIRECTORY", "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/cam")


@pytest.mark.parametrize(
    "text", ["http://u:geheim@h/r.yaml", "S3://bucket/u:geheim", " https://geheim@h/x", "asset:http://u:geheim@h"]
)
def test_an_address_is_no_path_and_shows_no_password(tmp_path: Path, text: str) -> None:
    for ask in (resolve, resolve_output_path, resolve_output, why_no_output):
        with pytest.raises(UserError, match="is an address, expected the path of a file") as caught:
            ask(text, tmp_path)
        assert "geheim" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a:b.mp4", "http:", "c:/x", "10://x", "asset:a.onnx"])
def test_a_name_with_a_colon_is_a_path(name: str) -> None:
    assert why_no_path(name) == ""


def folders() -> list[str]:
    return [str(asset_folder()), str(state_folder("lobby")), str(runs_folder())]


def test_what_is_nearer_to_camgraph_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert folders() == [
        "/home/cam/.cache/camgraph/assets",
        "/home/cam/.local/state/camgraph/lobby",
        f"/tmp/camgraph-{os.getuid()}",
    ]
    for name, value in (("CACHE_HOME", "/c"), ("STATE_HOME", "/s"), ("RUNTIME_DIR", "/dev")):
        monkeypatch.setenv(f"XDG_{name}", value)
    assert folders() == ["/c/camgraph/assets", "/s/camgraph/lobby", "/dev/camgraph"]
    for name in ("CACHE", "STATE", "RUNTIME"):
        monkeypatch.setenv(f"{name}_DIRECTORY", "/var:/usr")
    assert folders() == ["/var/assets", "/var/lobby", "/var/runs"]
    for name in ("CACHE", "STATE", "RUN"):
        monkeypatch.setenv(f"CAMGRAPH_{name}_DIR", f"/srv/{name}")
    assert folders() == ["/srv/CACHE/assets", "/srv/STATE/lobby", "/srv/RUN"]
    assert other_runs_folders() == []


@pytest.mark.parametrize("name", ["RUN", "STATE", "CACHE"])
def test_a_chosen_folder_is_an_absolute_path(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"CAMGRAPH_{name}_DIR", "var/lib")
    with pytest.raises(UserError, match=rf"CAMGRAPH_{name}_DIR: expected an absolute path.*got 'var/lib'"):
        folders()


def test_run_folder_too_deep_for_sockets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deep = "/" + "d" * 60
    monkeypatch.setenv("RUNTIME_DIRECTORY", deep)
    monkeypatch.setenv("XDG_RUNTIME_DIR", deep)
    assert str(runs_folder()).startswith("/tmp/camgraph-")
    monkeypatch.setenv("CAMGRAPH_RUN_DIR", deep)
    with pytest.raises(UserError, match="CAMGRAPH_RUN_DIR: expected a path of at most 49 characters"):
        runs_folder()


@pytest.mark.parametrize("home", ["", "home/cam"])
def test_a_home_that_is_no_path_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("HOME", home)
    with pytest.raises(
        EnvironmentProblem, match=f"HOME is '{home}', expected an absolute path: set HOME, or CAMGRAPH_"
    ):
        asset_folder()


def test_missing_home_is_named_for_missing_assets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))
    assert lost_home() == (
        f"HOME is {tmp_path}/gone, and there is no such folder: set HOME, or CAMGRAPH_CACHE_DIR to the folder of "
        "camgraph's cache"
    )
    assert lost_home() in how_to_get("asset:vtest.avi", CLIPS)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert lost_home() == ""
    assert how_to_get("asset:vtest.avi", CLIPS) == "get it with `camgraph assets pull vtest.avi`"
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert lost_home() == ""


def test_the_variable_that_decides_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert what_moves_assets().startswith("the folder follows from HOME (/home/cam): set that, or CAMGRAPH_CACHE_DIR, ")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert what_moves_assets().startswith("the folder follows from XDG_CACHE_HOME (/c): set that, or CAMGRAPH_")
    monkeypatch.setenv("CAMGRAPH_CACHE_DIR", "/x")
    assert what_moves_assets() == "CAMGRAPH_CACHE_DIR is /x: set it to a folder that you may write"


def test_a_cache_below_a_file_is_told_and_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/dev/null")
    listed = CliRunner().invoke(main, ["assets", "list"])
    assert (listed.exit_code, listed.stdout.count("missing")) == (0, len(CATALOGUE))
    pulled = CliRunner().invoke(main, ["assets", "pull", "vtest.avi"])
    assert pulled.exit_code == 3
    assert "cannot keep vtest.avi there: Not a directory; the folder follows from HOME (/dev/null)" in pulled.stderr


def test_missing_home_is_named_and_not_created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "gone"))
    for _ in range(2):
        result = CliRunner().invoke(main, ["model", "inspect", "asset:movenet-multipose.onnx"])
        assert result.exit_code == 2
        assert f"HOME is {tmp_path}/gone, and there is no such folder: set HOME" in result.stderr
    assert not (tmp_path / "gone").exists()
