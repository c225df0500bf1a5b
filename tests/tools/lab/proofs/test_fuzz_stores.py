"""Damaged files of a run: `tools.lab.proofs.fuzz_stores` tries thousands."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from camgraph.tools.lab.proofs.fuzz_check import try_each
from camgraph.tools.lab.proofs.fuzz_stores import _threads_that_stay, answer_to, damage, make_stores, retype

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the undamaged files of all stores; damage is done to copies."""
    root = tmp_path_factory.mktemp("stores")
    make_stores(root)
    return root


def test_damage_is_known_by_its_number(tmp_path: Path) -> None:
    found = []
    for seed in (1, 1, 2):
        path = tmp_path / "file"
        path.write_bytes(bytes(range(256)) * 200)
        damage(path, random.Random(seed))
        found.append(path.read_bytes())
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("store", ["outbox/stopped/outbox.sqlite", "history/killed/history.sqlite"])
def test_single_values_are_changed_against_their_types(stores: Path, tmp_path: Path, store: str) -> None:
    found = set()
    for seed in range(60):
        work = Path(shutil.copytree((stores / store).parent, tmp_path / f"{seed}"))
        retype(work / Path(store).name, random.Random(seed))
        with closing(sqlite3.connect(work / Path(store).name)) as db:
            found |= {line for (text,) in db.execute("PRAGMA integrity_check") for line in text.splitlines()}
    broken = {line.partition(" value in ")[2] for line in found if " value in " in line}
    assert {place.partition(".")[0] for place in broken} >= ({"events", "pending"} if "outbox" in store else {"events"})


def test_an_exception_that_ends_a_thread_is_a_fault() -> None:
    def stumble() -> None:
        raise TypeError("no float")

    def started() -> None:
        with _threads_that_stay():
            thread = threading.Thread(target=stumble)
            thread.start()
            thread.join()

    with pytest.raises(AssertionError, match="a thread has ended with TypeError: no float"):
        started()


def test_damage_of_an_index_that_readers_alone_meet_is_mended(stores: Path) -> None:
    """A quick check finds nothing wrong with this one, and it could not be read for good."""
    assert answer_to(stores, 1, 2707) == "history: begun anew"


def test_any_damaged_file_is_gone_on_with(stores: Path) -> None:
    # How long an answer takes says nothing on a machine that is busy: `make prove` looks at that.
    tried = try_each(range(80), lambda number: answer_to(stores, 3, number), limit_s=60)
    assert tried.faults == tried.late == []
    assert {answer.partition(":")[0] for answer in tried.answers} == {"outbox", "history", "index"}
    assert tried.answers["outbox: the lost events were counted"] > 5
