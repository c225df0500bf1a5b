"""The text of a unit, also as systemd itself reads it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.tools.commands.hosting.unit import MARK, UnitSettings, is_ours, unit_name, unit_text

SETTINGS = UnitSettings(
    name="lobby",
    graph=Path("/etc/camgraph/lobby.yaml"),
    program=("/bin/true",),
    user="root",
    writes=(Path("/srv/cam"), Path("/srv/my clips")),
    env_files=(Path("/etc/camgraph/lobby.env"),),
    secrets={"mail": Path("/etc/camgraph/mail")},
    systemd=252,
)


def values(text: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)


def test_the_graph_has_its_secrets_and_writes_its_folders_only() -> None:
    text = unit_text(SETTINGS)
    assert values(text, "ExecStart") == [
        "/bin/true run /etc/camgraph/lobby.yaml --name lobby --env-file ${CREDENTIALS_DIRECTORY}/env-file-1"
    ]
    assert values(text, "LoadCredential") == ["mail:/etc/camgraph/mail", "env-file-1:/etc/camgraph/lobby.env"]
    assert values(text, "ReadWritePaths") == ["-/srv/cam", '"-/srv/my clips"']
    assert values(text, "RequiresMountsFor") == ['/srv/cam "/srv/my clips"']
    assert values(text, "ProtectSystem") == ["strict"]


@pytest.mark.parametrize(
    ("change", "key", "expected"),
    [
        ({}, "MemoryDenyWriteExecute", ["yes"]),
        ({"jit": True}, "MemoryDenyWriteExecute", []),
        ({"gpu": True}, "MemoryDenyWriteExecute", []),
        ({}, "PrivateDevices", ["yes"]),
        ({"gpu": True}, "PrivateDevices", []),
        ({"gpu": True}, "DeviceAllow", ["char-nvidia* rw", "char-drm rw"]),
        ({"video_devices": True}, "DeviceAllow", ["char-video4linux rw"]),
        ({}, "ProtectHome", ["yes"]),
        ({"sees_home": True}, "ProtectHome", ["read-only"]),
        ({}, "Restart", ["on-failure"]),
        ({"live": False}, "Restart", ["no"]),
        ({}, "ExecReload", ["kill -HUP $MAINPID"]),
        ({"can_reload": False}, "ExecReload", []),
        ({"systemd": 253}, "RestartSteps", []),
        ({"systemd": 254}, "RestartSteps", ["6"]),
    ],
)
def test_the_sandbox_is_as_tight_as_the_graph_allows(change: dict[str, object], key: str, expected: list[str]) -> None:
    assert values(unit_text(replace(SETTINGS, **change)), key) == expected  # type: ignore[arg-type]


def test_signs_of_units_in_paths_mean_themselves() -> None:
    odd = replace(SETTINGS, graph=Path('/a b/100%/$HOME/"x"\\;.yaml'), writes=(Path("/srv/100%"),))
    (start,) = values(unit_text(odd), "ExecStart")
    assert r'"/a b/100%%/$$HOME/\"x\"\\;.yaml"' in start
    assert values(unit_text(odd), "ReadWritePaths") == ["-/srv/100%%"]
    with pytest.raises(UserError, match="printable"):
        unit_text(replace(SETTINGS, graph=Path("/a\nExecStartPre=/bin/rm")))


def test_a_unit_knows_whether_somebody_changed_it() -> None:
    text = unit_text(SETTINGS)
    assert is_ours(text)
    assert not is_ours(text.replace("Restart=on-failure", "Restart=always"))
    assert not is_ours(text.partition("\n")[2])
    assert not is_ours(f"{MARK}\n")
    assert not is_ours("")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
@pytest.mark.parametrize("change", [{}, {"gpu": True, "video_devices": True}, {"live": False, "jit": True}])
def test_systemd_finds_nothing_wrong_with_it(tmp_path: Path, change: dict[str, object]) -> None:
    file = tmp_path / unit_name("lobby")
    file.write_text(unit_text(replace(SETTINGS, **change)))  # type: ignore[arg-type]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], check=False, capture_output=True, text=True, timeout=60
    )
    about_ours = [line for line in done.stderr.splitlines() if "camgraph-lobby" in line]
    assert (about_ours, done.returncode) == ([], 0), done.stderr
