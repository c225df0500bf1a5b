"""Turns of processes that share a file."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from camgraph_test_stages.waiting import until

from camgraph.stages.video.live.hardware import Turns

WITHIN_S = 60.0


def test_one_waits_for_the_other_and_says_that_it_lives(tmp_path: Path) -> None:
    """Two open files are to the lock what two processes are."""
    signs: list[float] = []
    over: list[float] = []
    waits = Turns(tmp_path / "state" / "lock", lambda: signs.append(time.monotonic()))

    def wait() -> None:
        with waits.one():
            over.append(time.monotonic())

    with Turns(tmp_path / "state" / "lock", lambda: None).one():
        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: len(signs) >= 3, WITHIN_S, lambda: f"{len(signs)} signs of life, expected 3")
        assert not over
        let_go = time.monotonic()
    thread.join(WITHIN_S)
    assert over
    assert over[0] > let_go


def test_nobody_waits_for_ever(tmp_path: Path) -> None:
    wait_s, late, over = 0.3, threading.Event(), threading.Event()

    def wait() -> None:
        with Turns(tmp_path / "lock", late.set, wait_s).one():
            over.set()

    with Turns(tmp_path / "lock", lambda: None).one():
        thread, begun = threading.Thread(target=wait, daemon=True), time.monotonic()
        thread.start()
        assert over.wait(WITHIN_S)
        assert time.monotonic() - begun >= wait_s
        assert late.is_set()
    thread.join(WITHIN_S)


def test_without_a_place_for_the_file_it_begins_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    begun = False
    with Turns(tmp_path / "file" / "lock", lambda: None).one():
        begun = True
    assert begun
