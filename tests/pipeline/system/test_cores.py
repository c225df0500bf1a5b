"""How many cores there are, also where the system does not say which a process may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from camgraph.pipeline.system.cores import quota_cores, usable_cores


@pytest.fixture(autouse=True)
def no_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quota of the container that the tests run in is not theirs."""
    monkeypatch.setattr("camgraph.pipeline.system.cores.MEMBERSHIP", tmp_path / "none")


def test_only_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert usable_cores() == 3


@pytest.mark.parametrize(("counted", "cores"), [(64, 64), (None, 1)])
def test_all_of_the_machine_where_that_is_not_told(
    monkeypatch: pytest.MonkeyPatch, counted: int | None, cores: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    assert usable_cores() == cores


# --- quotas of containers


def groups(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("membership", "files", "cores"),
    [
        ("0::/", {}, None),
        ("0::/", {"cpu.max": "max 100000\n"}, None),
        ("0::/", {"cpu.max": "250000 100000\n"}, 2.5),
        ("0::/a/b", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "150000 100000\n", "cpu.max": "400000 100000"}, 1.5),
        ("0::/of/the/host", {"cpu.max": "300000 100000\n"}, 3.0),
        ("0::/../outside", {"cpu.max": "300000 100000\n"}, None),
        ("0::/", {"cpu.max": "nonsense"}, None),
        ("4:cpu:/d", {"cpu/d/cpu.cfs_quota_us": "-1", "cpu/d/cpu.cfs_period_us": "100000"}, None),
        ("4:cpu,cpuacct:/d", {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2.0),
        ("5:memory:/d", {"memory/cpu.max": "100000 100000"}, None),
    ],
)  # fmt: skip
def test_a_quota_is_the_lowest_of_all_groups_around_the_process(
    tmp_path: Path, membership: str, files: dict[str, str], cores: float | None
) -> None:
    assert quota_cores(groups(tmp_path, files), f"1:name=systemd:/x\n{membership}\n") == cores


@pytest.mark.parametrize(("quota", "cores"), [("250000", 2), ("50000", 1), ("900000", 3), ("max", 3)])
def test_no_more_cores_than_the_quota_pays_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7})
    monkeypatch.setattr("camgraph.pipeline.system.cores.CGROUPS", groups(tmp_path, {"cpu.max": f"{quota} 100000\n"}))
    (tmp_path / "cgroup").write_text("0::/\n")
    monkeypatch.setattr("camgraph.pipeline.system.cores.MEMBERSHIP", tmp_path / "cgroup")
    assert usable_cores() == cores
