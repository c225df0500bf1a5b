"""How much memory there is, of the machine and of containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.system.machine_memory import given_memory, usable_memory


@pytest.mark.parametrize(
    ("membership", "files", "given"),
    [
        ("0::/", {}, None),
        ("0::/", {"memory.max": "max\n"}, None),
        ("0::/", {"memory.max": "4096\n"}, 4096),
        ("0::/a/b", {"a/b/memory.max": "max\n", "a/memory.max": "300\n", "memory.max": "400"}, 300),
        ("0::/../outside", {"memory.max": "300"}, None),
        ("0::/", {"memory.max": "nonsense"}, None),
        ("4:memory:/d", {"memory/d/memory.limit_in_bytes": "500", "memory/memory.limit_in_bytes": "700"}, 500),
        ("5:cpu:/d", {"memory/memory.limit_in_bytes": "500"}, None),
    ],
)
def test_lowest_limit_of_all_cgroups_counts(
    tmp_path: Path, membership: str, files: dict[str, str], given: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert given_memory(tmp_path, membership) == given


def test_the_lower_of_machine_and_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("meminfo", "MemTotal:  8 kB\nMemFree: 1 kB\n"), ("membership", "0::/"), ("memory.max", "5000")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("camgraph.pipeline.system.machine_memory.CGROUPS", tmp_path)
    monkeypatch.setattr("camgraph.pipeline.system.machine_memory.MEMBERSHIP", tmp_path / "none")
    monkeypatch.setattr("camgraph.pipeline.system.machine_memory._MEMINFO", tmp_path / "meminfo")
    assert usable_memory() == 8192
    monkeypatch.setattr("camgraph.pipeline.system.machine_memory.MEMBERSHIP", tmp_path / "membership")
    assert usable_memory() == 5000
    monkeypatch.setattr("camgraph.pipeline.system.machine_memory._MEMINFO", tmp_path / "none")
    assert usable_memory() == 5000
    monkeypatch.setattr("camgraph.pipeline.system.machine_memory.MEMBERSHIP", tmp_path / "none")
    assert usable_memory() is None
