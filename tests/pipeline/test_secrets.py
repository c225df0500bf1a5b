"""Secrets from files, hidden wherever they occur; and what the processes of a run can be made to tell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from camgraph_test_stages.waiting import until

from pipeline.errors import GraphError
from pipeline.graph import load_plan
from pipeline.graph.secret_files import named_secret, open_to_others, secret_file
from pipeline.graph.variables import substitute
from pipeline.system import redaction
from pipeline.system.child_environment import HANDED_ON, handed_on, named
from pipeline.system.confidential import holds_credentials, secrets_in

ROOT = Path(__file__).parents[2]
SECRET = "Zq9 w/ord's"
GRAPH = """
version: 1
name: s{pid}
processes: {processes}
pass_environment: [PASSED_ON, WHOLE_*]
cameras: {{a: {{frames: 12}}}}
stages:
  src: {{use: count_source}}
  bad: {{use: crash, from: src, with: {crash}}}
  out: {{use: collect, from: bad, with: {{path: numbers}}}}
"""
PLACES = ["${secret:door}", "${file:FILE}", "${DOOR_PASSWORD}", "rtsp://viewer:${DOOR}@10.0.0.1/x"]


def run(folder: Path, processes: str, crash: dict[str, Any], *words: str, **environ: str) -> str:
    """All that a run says on both streams."""
    (folder / "g.yaml").write_text(GRAPH.format(pid=os.getpid(), processes=processes, crash=json.dumps(crash)))
    done = subprocess.run(
        [sys.executable, "-m", "tools.cli", "run", "g.yaml", *words],
        cwd=folder,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state"), **environ},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("processes", ["separate", "one"])
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_hidden_wherever_its_value_occurs(tmp_path: Path, processes: str, place: str) -> None:
    (tmp_path / "door").write_text(SECRET + "\n")
    note = place.replace("FILE", str(tmp_path / "door"))
    given = {"CREDENTIALS_DIRECTORY": str(tmp_path), "DOOR_PASSWORD": SECRET, "DOOR": SECRET}
    result = run(tmp_path, processes, {"how": "speak", "note": note}, "--json-logs", **given)
    lines = [json.loads(line) for line in result.splitlines()]
    assert any(line["event"] == "spoken" and "***" in line["note"] for line in lines)
    assert any("ValueError: " in line.get("exception", "") for line in lines)
    assert any(line.get("text", "").startswith("a note: ") for line in lines if "process" in line) or processes == "one"
    for spelling in ("Zq9", quote(SECRET, safe="")):
        assert spelling not in result


@pytest.mark.parametrize("confidential", [True, False])
def test_processes_get_only_needed_environment(tmp_path: Path, *, confidential: bool) -> None:
    note = "rtsp://u:literal@h/x" if confidential else "nothing"
    given = {"OTHER_PASSWORD": "a", "PASSED_ON": "b", "WHOLE_LOT": "c", "READ": "d", "TZ": "UTC", "ORT_X": "e"}
    run(tmp_path, "separate", {"how": "confess", "note": note, "reads": ["READ"]}, **given)
    output = json.loads((tmp_path / "confession").read_text())
    has = {name for name in given if name in output["environ"]}
    assert has == {"PASSED_ON", "WHOLE_LOT", "READ", "TZ", "ORT_X"}
    assert {"PATH", "HOME"} <= output["environ"].keys()
    at_start = {one.partition("=")[0] for one in output["at_start"]}
    assert not at_start & {"OTHER_PASSWORD", "PASSED_ON", "WHOLE_LOT", "READ"}
    assert output["dumpable"] == (0 if confidential else 1)
    assert (output["core"] == [0, 0]) or not confidential


def test_same_user_cannot_inspect_run_with_credentials(tmp_path: Path) -> None:
    """Not into the process that was started, nor into those that it started; root's own power is taken away first."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("no setpriv")
    powerless = [setpriv, "--inh-caps=-all", *(["--bounding-set=-all"] if os.getuid() == 0 else [])]
    (tmp_path / "g.yaml").write_text(
        GRAPH.format(pid=os.getpid(), processes="separate", crash='{at_seq: 9999999, note: "${secret:DOOR}"}').replace(
            "{frames: 12}", "{frames: 10000000, pace_ms: 5}"
        )
    )
    command = [*powerless, sys.executable, "-m", "tools.cli", "run", "g.yaml", "--quiet"]
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "DOOR": SECRET}
    with subprocess.Popen(command, cwd=tmp_path, env=environ) as process:
        try:
            numbers = tmp_path / "numbers"
            # What stands there went through all processes: each of them has been told what it is.
            until(lambda: numbers.exists() and numbers.stat().st_size, 200)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            assert len(children) == 4
            for pid in (str(process.pid), *children):
                look = [*powerless, "cat", f"/proc/{pid}/environ"]
                seen = subprocess.run(look, capture_output=True, text=True, check=False)
                assert SECRET not in seen.stdout
                line = Path(f"/proc/{pid}/cmdline").read_text()
                holds_it = "bad.0" in line or "tools.cli" in line
                assert bool(seen.returncode) is holds_it
        finally:
            process.terminate()


def test_the_list_of_what_is_handed_on_is_documented() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    assert [name for name in HANDED_ON if f"`{name}`" not in text] == []


def test_names_and_beginnings_of_names() -> None:
    environ = {"PATH": "1", "LC_ALL": "2", "PATHS": "3", "AWS_SECRET_ACCESS_KEY": "4", "http_proxy": "5"}
    assert handed_on(environ) == {"PATH": "1", "LC_ALL": "2"}
    assert named(["AWS_*"], environ) == {"AWS_SECRET_ACCESS_KEY": "4"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CAMGRAPH_DOOR", "x"),
        ("CAMGRAPH_DOOR_PASSWORD", "x"),
        ("PYTHON_PW", "x"),
        ("PYTHONISTA", "x"),
        ("XDG_PASSWORD", "x"),
        ("CUDA_TOKEN", "x"),
        ("NVIDIA_API_KEY", "x"),
        ("LC_CAMERA", "rtsp://viewer:geheim@h/x"),
        ("OV_DOOR", "{hidden}"),
        ("OV_DOOR", "a {hidden} z"),
    ],
)
def test_what_may_be_a_password_is_not_handed_on(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_any_known", None)
    redaction.hide(["Zq9 hidden"])
    assert handed_on({name: value.format(hidden="Zq9 hidden")}) == {}


@pytest.mark.parametrize(
    "name", ["CAMGRAPH_RUN_DIR", "PYTHONPATH", "PYTHONFAULTHANDLER", "CUDA_VISIBLE_DEVICES", "XDG_RUNTIME_DIR"]
)
def test_what_processes_need_is_handed_on(name: str) -> None:
    assert handed_on({name: "/x"}) == {name: "/x"}


# ---- where secrets lie


def test_a_named_secret_comes_from_the_first_place_that_has_it(tmp_path: Path) -> None:
    given, mounted = tmp_path / "given", tmp_path / "mounted"
    given.mkdir()
    mounted.mkdir()
    environ = {"CREDENTIALS_DIRECTORY": str(given), "door": "third"}
    assert named_secret("door", environ, mounted).value == "third"
    (mounted / "door").write_text("second\r\n")
    assert named_secret("door", environ, mounted).value == "second"
    (given / "door").write_text("first\n\n")
    assert named_secret("door", environ, mounted).value == "first\n"
    missing = named_secret("yard", environ, mounted).problem
    assert str(given / "yard") in missing
    assert "variable yard" in missing


def test_a_file_that_others_can_read_is_remarked_on(tmp_path: Path) -> None:
    file = tmp_path / "pw"
    file.write_text("secret\n")
    for mode, reported in ((0o600, False), (0o640, False), (0o644, True), (0o660, True), (0o602, True)):
        file.chmod(mode)
        assert bool(open_to_others(file)) is reported, oct(mode)
        assert bool(secret_file(str(file)).remark) is reported
    assert secret_file(str(file)).value == "secret"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${file:pw}", "`pw` is no absolute path"),
        ("${file:/no/such}", "/no/such cannot be read: No such file"),
        ("${file:/tmp}", "/tmp is a folder"),
        ("${file:/dev/zero}", "/dev/zero is a device"),
        ("${file:~nobody-of-that-name/x}", "no user of this machine has the name after `~`"),
        ("${file:/a\0b}", "holds a NUL character, which no file name can have"),
        ("${file:/a\ud800b}", "holds characters that no file name can have"),
        (f"${{file:/{'a' * 300}}}", "each of its names at most 255"),
        ("${file:asset:x}", "`asset:x` is no absolute path"),
        (f"${{secret:{'a' * 300}}}", "there is no secret aaaa"),
        ("${secret:}", "`${` without a name"),
        ("${secret:../x}", "`${` without a name"),
    ],
)
def test_what_is_no_secret_file_is_told(text: str, why: str) -> None:
    result = substitute(text, {})
    assert result.text == text
    assert why in result.problems[0]


def test_missing_file_is_no_remark(tmp_path: Path) -> None:
    assert open_to_others(tmp_path / "gone") == ""


def test_a_secret_in_a_folder_that_may_not_be_entered_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def forbidden(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "is_file", forbidden)
    assert "cannot be read" in named_secret("door", {"door": "x"}, tmp_path).problem


def test_a_binary_or_huge_file_is_no_secret(tmp_path: Path) -> None:
    for content, why in (
        (b"a\0b", "not text"),
        (b"\xff", "not text"),
        (b"a\nb", "not text"),
        (b"x" * 70_000, "larger"),
    ):
        (tmp_path / "pw").write_bytes(content)
        assert why in substitute(f"${{file:{tmp_path / 'pw'}}}", {}).problems[0]


def test_a_secret_in_the_user_part_is_encoded(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("a/b@c\n")
    assert substitute(f"rtsp://u:${{file:{tmp_path}/pw}}@h/x", {}).text == "rtsp://u:a%2Fb%40c@h/x"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("${SITE}", False),
        ("rtsp://${SITE}@h", False),
        ("rtsp://${SITE}:x@h", False),
        ("rtsp://u:${SITE}@h", True),
        ("http://h/${API_KEY}", True),
        ("${DB_PASSWORD_2}", True),
        ("${TOKEN}", True),
        ("${PASSAGE}", False),
        ("${secret:SITE}", True),
    ],
)
def test_which_values_are_secret(text: str, *, hidden: bool) -> None:
    environ = dict.fromkeys(("SITE", "API_KEY", "DB_PASSWORD_2", "TOKEN", "PASSAGE"), "value")
    assert bool(substitute(text, environ).hidden) is hidden


def test_a_mistake_never_shows_a_secret(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text(SECRET)
    (tmp_path / "g.yaml").write_text(f"version: '${{file:{tmp_path}/pw}}'\nstages: {{}}\ncameras: {{}}\n")
    with pytest.raises(GraphError) as error:
        load_plan(tmp_path / "g.yaml")
    assert "Zq9" not in str(error.value)


def test_a_process_gets_the_secrets_that_it_needs_to_hide() -> None:
    settings = [{"a": {"url": "rtsp://u:ge%2Fheim@h"}}, ({"x": [1, "tok en"]}, {})]
    assert secrets_in(settings, ["ge/heim", "tok en", "other"]) == ("ge/heim", "tok en")
    assert holds_credentials(settings)
    assert not holds_credentials([{"url": "rtsp://h/x", "path": "/a@b:c"}])
