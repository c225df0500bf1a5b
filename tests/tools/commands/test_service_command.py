"""`camgraph service` on the image of a machine: a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from camgraph.tools.cli import main
from camgraph.tools.commands.hosting import installation
from camgraph.tools.commands.hosting.unit import is_ours

pytestmark = pytest.mark.processes

GRAPH = """
version: 1
name: lobby
cameras: {a: {frames: 3, live: true, log: "${PLACE}"}}
stages:
  src: {use: count_source}
  emit: {use: emit, from: src}
  log: {use: sink_jsonl, from: emit, with: {path: events.jsonl}}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "image").mkdir()
    (tmp_path / "g.yaml").write_text(GRAPH)
    (tmp_path / "g.env").write_text("PLACE=here\n")
    (tmp_path / "g.env").chmod(0o600)
    return tmp_path


def service(*words: str) -> Result:
    return CliRunner().invoke(main, ["service", *words])


def install(*words: str) -> Result:
    return service("install", "g.yaml", "--env-file", "g.env", *words)


def test_a_service_is_installed_once_and_removed(here: Path) -> None:
    file = here / "image/etc/systemd/system/camgraph-lobby.service"
    first = install("--root", "image")
    assert first.exit_code == 0, first.output
    assert "camgraph-lobby.service: written" in first.output
    assert f"install -d -o camgraph {here}" not in first.output
    assert "systemctl enable --now camgraph-lobby.service" in first.output
    text = file.read_text()
    assert is_ours(text)
    assert f"ReadWritePaths=-{here}\n" in text
    assert f"LoadCredential=env-file-1:{here}/g.env\n" in text
    assert "u camgraph" in (here / "image/etc/sysusers.d/camgraph.conf").read_text()
    again = install("--root", "image")
    assert "is there already, with the same content" in again.output
    other = install("--root", "image", "--name", "lobby-2")
    assert "camgraph-lobby-2.service: written" in other.output
    assert "--name lobby-2" in (here / "image/etc/systemd/system/camgraph-lobby-2.service").read_text()
    changed = install("--root", "image", "--gpu")
    assert "camgraph-lobby.service: written" in changed.output
    assert "char-nvidia" in file.read_text()
    assert service("uninstall", "lobby", "--root", "image").exit_code == 0
    assert not file.exists()
    gone = service("uninstall", "lobby", "--root", "image")
    assert (gone.exit_code, "services that are there: lobby-2" in gone.output) == (2, True)


def test_a_graph_in_one_process_cannot_be_reloaded(here: Path) -> None:
    assert "ExecReload=" in install("--dry-run").output
    (here / "g.yaml").write_text(GRAPH.replace("version: 1", "version: 1\nprocesses: one"))
    assert "ExecReload=" not in install("--dry-run").output


def test_a_dry_run_writes_nothing(here: Path) -> None:
    result = install("--dry-run", "--root", "image")
    assert result.exit_code == 0
    assert is_ours(result.stdout)
    assert list((here / "image").iterdir()) == []


def test_a_dry_run_warns_as_the_installation_does(here: Path) -> None:
    """On the standard error, so that the standard output is the unit alone."""
    (here / "g.yaml").write_text(GRAPH.replace("events.jsonl", "/var/tmp/events.jsonl"))
    said = install("--root", "image").output
    dry = install("--root", "image", "--dry-run")
    for warning in ("it runs as camgraph, and writes /var/tmp\n", "/var/tmp: a service has a /tmp of its own"):
        assert (warning in said, warning in dry.stderr, warning in dry.stdout) == (True, True, False)


def test_a_dry_run_tells_why_this_machine_would_refuse(here: Path) -> None:
    """The folders of tests are in /tmp, which a service has for itself."""
    result = install("--dry-run")
    assert result.exit_code == 0
    assert is_ours(result.stdout)
    assert "would be refused: a service has a /tmp of its own" in result.stderr
    assert "would be refused: there is no user nobody-here" in install("--dry-run", "--user", "nobody-here").stderr


@pytest.mark.parametrize("foreign", ["[Service]\nExecStart=/bin/true\n", "changed", "link", "folder"])
def test_a_unit_of_others_is_neither_replaced_nor_removed(here: Path, foreign: str) -> None:
    file = here / "image/etc/systemd/system/camgraph-lobby.service"
    install("--root", "image")
    if foreign == "link":
        file.rename(here / "other")
        file.symlink_to(here / "other")
    elif foreign == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_text(file.read_text() + "Nice=5\n" if foreign == "changed" else foreign)
    for result in (install("--root", "image", "--gpu"), service("uninstall", "lobby", "--root", "image")):
        assert result.exit_code == 2
        assert "camgraph-lobby.service" in result.output
        assert "camgraph has written" in result.output or "was not written by camgraph" in result.output
    assert os.path.lexists(file)


def test_secrets_are_those_that_the_graph_names(here: Path) -> None:
    (here / "g.yaml").write_text(GRAPH.replace("${PLACE}", "${secret:place}"))
    (here / "place").write_text("secret-of-nobody\n")
    (here / "place").chmod(0o600)
    result = service("install", "g.yaml", "--secret", "place=place", "--dry-run")
    assert result.exit_code == 0, result.output
    assert f"LoadCredential=place:{here}/place\n" in result.stdout
    assert "there is no secret place" in service("install", "g.yaml", "--dry-run").output
    for wrong, why in (("place", "expected NAME=FILE"), ("place=gone", "gone"), ("a/b=place", "expected NAME=FILE")):
        refused = service("install", "g.yaml", "--secret", wrong, "--dry-run")
        assert (refused.exit_code, why in refused.output) == (2, True)


@pytest.mark.parametrize("name", ["a b", "x" * 31, "../etc", "a@b"])
def test_names_that_no_service_can_have(name: str) -> None:
    assert install("--root", "image", "--name", name).exit_code == 2
    assert service("uninstall", name, "--root", "image").exit_code == 2


def test_assets_of_the_graph_are_copied_for_the_service(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAMGRAPH_CACHE_DIR", str(here / "cache"))
    (here / "cache/assets").mkdir(parents=True)
    for name in ("place.onnx", "place.bin", "other.onnx"):
        (here / "cache/assets" / name).write_text(name)
    (here / "g.env").write_text("PLACE=asset:place.onnx\n")
    result = install("--root", "image")
    copied = here / "image/var/cache/camgraph/assets"
    assert result.output.count("copied for the service") == 2, result.output
    assert sorted(path.name for path in copied.iterdir()) == ["place.bin", "place.onnx"]
    assert "copied" not in install("--root", "image").output


def test_without_systemd_or_root_there_is_a_way_out(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "_BOOTED", here / "nowhere")
    result = install()
    assert (result.exit_code, "--root DIR" in result.output) == (3, True)
    monkeypatch.setattr(installation, "_BOOTED", here)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    result = install()
    assert (result.exit_code, "type `sudo " in result.output) == (3, True)
