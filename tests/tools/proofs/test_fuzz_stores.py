"""Damaged files of a run: `tools.proofs.fuzz_stores` tries thousands."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tools.proofs.fuzz_check import try_each
from tools.proofs.fuzz_stores import answer_to, damage, make_stores

pytestmark = pytest.mark.slow


def test_damage_is_known_by_its_number(tmp_path: Path) -> None:
    found = []
    for seed in (1, 1, 2):
        path = tmp_path / "file"
        path.write_bytes(bytes(range(256)) * 200)
        damage(path, random.Random(seed))
        found.append(path.read_bytes())
    assert found[0] == found[1] != found[2]


def test_any_damaged_file_is_gone_on_with(tmp_path: Path) -> None:
    make_stores(tmp_path)
    # How long an answer takes says nothing on a machine that is busy: `make prove` looks at that.
    tried = try_each(range(80), lambda number: answer_to(tmp_path, 3, number), limit_s=60)
    assert tried.faults == []
    assert {answer.partition(":")[0] for answer in tried.answers} == {"outbox", "history", "index"}
    assert tried.answers["outbox: the lost events were counted"] > 5
